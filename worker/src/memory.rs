//! The memory that operations share, and what the machine says about it.

use std::sync::Arc;

use sysinfo::{MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is counted in.
const UNIT: u64 = 1 << 20;

/// How much memory the operations may use that run side by side, as far as is known beforehand.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    units: Arc<Semaphore>,
    total: u32,
}

/// A share of the budget, given back when it is dropped.
pub type Share = OwnedSemaphorePermit;

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        let total = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        Self {
            units: Arc::new(Semaphore::new(total as usize)),
            total,
        }
    }

    /// Waits for a share of so many bytes. Who needs more than there is waits for all of it, and has
    /// it alone. Whoever asked first is served first, so that a large share is not waited for in vain.
    pub async fn reserve(&self, bytes: u64) -> Option<Share> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let share = Arc::clone(&self.units).acquire_many_owned(units.min(self.total));
        // Nobody closes it.
        share.await.ok()
    }

    /// The whole, in bytes.
    pub fn total(&self) -> u64 {
        u64::from(self.total) * UNIT
    }

    /// What is not reserved, in bytes.
    pub fn free(&self) -> u64 {
        self.units.available_permits() as u64 * UNIT
    }
}

/// How much memory the worker may use altogether, in bytes: the machine's, or what the control group
/// allows, whichever is less.
pub fn of_machine() -> u64 {
    let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(refresh);
    let total = system.total_memory();
    system
        .cgroup_limits()
        .map_or(total, |limits| limits.total_memory.min(total))
}

/// How much memory a process holds, in bytes.
pub fn of_process(id: u32) -> Option<u64> {
    let id = Pid::from_u32(id);
    let mut system = System::new();
    system.refresh_processes_specifics(
        ProcessesToUpdate::Some(&[id]),
        false,
        ProcessRefreshKind::nothing().with_memory(),
    );
    system.process(id).map(sysinfo::Process::memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn shares_are_waited_for_in_turn() {
        let budget = MemoryBudget::new(10 * UNIT);
        let first = budget.reserve(6 * UNIT).await;
        assert_eq!(budget.free(), 4 * UNIT);
        let mut large = Box::pin(budget.reserve(u64::MAX));
        assert!((&mut large).now_or_never().is_none());
        // It would fit, but came later.
        let mut small = Box::pin(budget.reserve(1));
        assert!((&mut small).now_or_never().is_none());
        drop(first);
        let all = large.await;
        assert_eq!(budget.free(), 0);
        assert!((&mut small).now_or_never().is_none());
        drop(all);
        let _small = small.await;
        assert_eq!(budget.free(), 9 * UNIT);
    }

    #[test]
    fn the_machine_has_some_and_so_has_this_process() {
        let own = of_process(std::process::id()).unwrap();
        assert!((1 << 20..of_machine()).contains(&own), "{own}");
        assert_eq!(of_process(u32::MAX), None);
    }
}
