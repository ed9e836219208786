//! A TCP proxy before a group of servers: connections go to those that accept them, in turn, and
//! what goes through can be held up and lost.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::plan::Trouble;

const CONNECT: Duration = Duration::from_secs(2);

/// A proxy. It ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    trouble: watch::Sender<Option<Trouble>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port, before these servers.
    pub async fn start(servers: Vec<SocketAddr>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (trouble, watching) = watch::channel(None);
        let group = Arc::new(Group {
            servers,
            next: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, group, watching));
        Ok(Self {
            address,
            trouble,
            accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins trouble, or ends it.
    pub fn set(&self, trouble: Option<Trouble>) {
        self.trouble.send_replace(trouble);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Group {
    servers: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl Group {
    /// Connects to the next server in turn that accepts.
    async fn connect(&self) -> Option<TcpStream> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for number in 0..self.servers.len() {
            let server = self.servers[(first + number) % self.servers.len()];
            if let Ok(Ok(stream)) = timeout(CONNECT, TcpStream::connect(server)).await {
                return Some(stream);
            }
        }
        None
    }
}

async fn accept(
    listener: TcpListener,
    group: Arc<Group>,
    trouble: watch::Receiver<Option<Trouble>>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Too many open files, say: it passes.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (group, trouble) = (Arc::clone(&group), trouble.clone());
        tokio::spawn(async move {
            if matches!(*trouble.borrow(), Some(Trouble::Refuse)) {
                return;
            }
            let Some(server) = group.connect().await else {
                return;
            };
            // Otherwise small messages wait for each other.
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let requests = forward(from_client, to_server, Way::Request, trouble.clone());
            let answers = forward(from_server, to_client, Way::Answer, trouble);
            // When one way ends, both do: none of ours closes one half of a connection.
            tokio::select! {
                () = requests => {}
                () = answers => {}
            }
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Request,
    Answer,
}

/// Copies until the end, or until trouble breaks the connection.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: Way,
    mut trouble: watch::Receiver<Option<Trouble>>,
) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        let now = *trouble.borrow_and_update();
        match now {
            None => {}
            Some(Trouble::Delay(millis)) => sleep(Duration::from_millis(millis)).await,
            Some(Trouble::Refuse) => return,
            Some(Trouble::LoseRequests) if way == Way::Request => return,
            Some(Trouble::LoseAnswers) if way == Way::Answer => return,
            Some(Trouble::LoseRequests | Trouble::LoseAnswers) => {}
            Some(Trouble::Stall) => {
                let over = |trouble: &Option<Trouble>| *trouble != Some(Trouble::Stall);
                if trouble.wait_for(over).await.is_err() {
                    return;
                }
            }
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// A server that answers what it is told with "pong", and whether it was told anything.
    async fn server() -> (SocketAddr, Arc<AtomicBool>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let told = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&told);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = [0; 4];
                if stream.read_exact(&mut bytes).await.is_ok() {
                    seen.store(true, Ordering::Relaxed);
                    stream.write_all(b"pong").await.unwrap();
                }
            }
        });
        (address, told)
    }

    async fn ask(proxy: &Proxy) -> io::Result<[u8; 4]> {
        let mut stream = TcpStream::connect(proxy.address()).await?;
        stream.write_all(b"ping").await?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn what_gets_through() {
        for (trouble, is_told, is_answered) in [
            (None, true, true),
            (Some(Trouble::Delay(10)), true, true),
            (Some(Trouble::LoseRequests), false, false),
            (Some(Trouble::LoseAnswers), true, false),
            (Some(Trouble::Refuse), false, false),
        ] {
            let (address, told) = server().await;
            let proxy = Proxy::start(vec![address]).await.unwrap();
            proxy.set(trouble);
            let answer = ask(&proxy).await;
            assert_eq!(answer.is_ok(), is_answered, "{trouble:?}");
            assert_eq!(told.load(Ordering::Relaxed), is_told, "{trouble:?}");
            proxy.set(None);
            assert_eq!(&ask(&proxy).await.unwrap(), b"pong");
        }
    }

    #[tokio::test]
    async fn what_is_stalled_gets_through_later() {
        let (address, told) = server().await;
        let proxy = Arc::new(Proxy::start(vec![address]).await.unwrap());
        proxy.set(Some(Trouble::Stall));
        let asking = Arc::clone(&proxy);
        let answer = tokio::spawn(async move { ask(&asking).await });
        sleep(Duration::from_millis(50)).await;
        assert!(!answer.is_finished() && !told.load(Ordering::Relaxed));
        proxy.set(None);
        assert_eq!(&answer.await.unwrap().unwrap(), b"pong");
    }

    #[tokio::test]
    async fn goes_to_whoever_accepts() {
        let (one, _) = server().await;
        let (other, _) = server().await;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let closed = free.local_addr().unwrap();
        drop(free);
        let proxy = Proxy::start(vec![closed, one, other]).await.unwrap();
        for _ in 0..6 {
            assert_eq!(&ask(&proxy).await.unwrap(), b"pong");
        }
    }
}
