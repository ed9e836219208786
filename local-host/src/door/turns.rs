//! Whose turn it is: how many requests are inside components at once, and with how large bodies.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::door::Refusal;
use crate::door::limits::{
    REQUESTS_INSIDE, TURN_TIME, UNKNOWN_LENGTH, UPLOAD_BYTES, UPLOADS_INSIDE,
};

const TOO_MANY: Refusal = Refusal::busy("there are too many requests; try again");
const CLOSED: Refusal = Refusal::busy("shutting down");

/// The places that there are.
pub struct Turns {
    inside: Semaphore,
    uploads: Semaphore,
    /// MiB of all uploads.
    units: Semaphore,
}

/// A request's places, free again when this is dropped.
pub struct Turn<'a> {
    _places: Vec<SemaphorePermit<'a>>,
}

/// A body of which a part is still to come, by its length if that is known.
#[derive(Clone, Copy, Debug)]
pub struct Length(pub Option<u64>);

impl Default for Turns {
    fn default() -> Self {
        Self {
            inside: Semaphore::new(REQUESTS_INSIDE),
            uploads: Semaphore::new(UPLOADS_INSIDE),
            units: Semaphore::new(Length(Some(UPLOAD_BYTES)).units() as usize),
        }
    }
}

impl Turns {
    /// Waits until a request may go to a component, and not for ever: whoever comes back later holds no
    /// memory meanwhile. Those who came first are first.
    pub async fn wait(&self, upload: Option<Length>) -> Result<Turn<'_>, Refusal> {
        self.wait_for(TURN_TIME, upload).await
    }

    async fn wait_for(&self, time: Duration, upload: Option<Length>) -> Result<Turn<'_>, Refusal> {
        timeout(time, self.take(upload))
            .await
            .map_err(|_| TOO_MANY)?
    }

    async fn take(&self, upload: Option<Length>) -> Result<Turn<'_>, Refusal> {
        let mut places = Vec::new();
        if let Some(length) = upload {
            places.push(take(&self.uploads, 1).await?);
            places.push(take(&self.units, length.units()).await?);
        }
        places.push(take(&self.inside, 1).await?);
        Ok(Turn { _places: places })
    }
}

impl Length {
    /// What it takes of all the [`UPLOAD_BYTES`], in MiB.
    fn units(self) -> u32 {
        let length = self.0.unwrap_or(UNKNOWN_LENGTH).min(UPLOAD_BYTES);
        u32::try_from(length.div_ceil(1 << 20)).unwrap_or(u32::MAX)
    }
}

async fn take(places: &Semaphore, count: u32) -> Result<SemaphorePermit<'_>, Refusal> {
    places.acquire_many(count).await.map_err(|_| CLOSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::limits::BODY_SIZE;

    const MIB: u64 = 1 << 20;

    #[test]
    fn uploads_count_in_whole_mib() {
        for (length, units) in [
            (Some(1), 1),
            (Some(MIB), 1),
            (Some(MIB + 1), 2),
            (Some(BODY_SIZE), (BODY_SIZE / MIB) as u32),
            (None, 32),
            // More than all of it would never have its turn.
            (Some(u64::MAX), (UPLOAD_BYTES / MIB) as u32),
        ] {
            assert_eq!(Length(length).units(), units, "{length:?}");
        }
    }

    #[tokio::test]
    async fn so_many_and_no_more() {
        let all = Some(Length(Some(UPLOAD_BYTES)));
        for (upload, room, other, other_has_room) in [
            (None, REQUESTS_INSIDE, Some(Length(Some(1))), false),
            (Some(Length(Some(1))), UPLOADS_INSIDE, None, true),
            (Some(Length(None)), 8, None, true),
            (all, 1, Some(Length(Some(1))), false),
        ] {
            let turns = Turns::default();
            let now = Duration::from_millis(5);
            let mut inside = Vec::new();
            for _ in 0..room {
                inside.push(turns.wait_for(now, upload).await.unwrap());
            }
            let refusal = turns.wait_for(now, upload).await.err();
            assert_eq!(refusal, Some(TOO_MANY), "{upload:?}");
            let other = turns.wait_for(now, other).await;
            assert_eq!(other.is_ok(), other_has_room, "{upload:?}");
            drop(other);
            // Who was turned away keeps no place, and who leaves frees one.
            inside.pop();
            assert!(turns.wait_for(now, upload).await.is_ok(), "{upload:?}");
        }
    }
}
