//! Asking an HTTP server how it is.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIME: Duration = Duration::from_secs(5);
/// `HTTP/1.1 200`.
const STATUS_LINE: usize = 12;

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers 200.
    Well,
    /// It answers 500: what it was given is wrong, and time does not mend that.
    Failing,
    /// It does not answer, or not yet what it should.
    Away,
}

/// How the server is that should answer `GET path` with 200.
pub fn ask(address: SocketAddr, path: &str) -> Health {
    match status(address, path).as_deref() {
        Ok("200") => Health::Well,
        Ok("500") => Health::Failing,
        _ => Health::Away,
    }
}

fn status(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIME)?;
    stream.set_read_timeout(Some(TIME))?;
    stream.set_write_timeout(Some(TIME))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = [0; STATUS_LINE];
    stream.read_exact(&mut line)?;
    let line = String::from_utf8_lossy(&line);
    Ok(line.split(' ').nth(1).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_200_is_well() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Health::Well),
            (
                "HTTP/1.1 500 Internal Server Error\r\n\r\n",
                Health::Failing,
            ),
            ("HTTP/1.1 503 Service Unavailable\r\n\r\n", Health::Away),
            ("HTTP/1.1 ", Health::Away),
            ("", Health::Away),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let served = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = io::BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                // All of it: closing with something unread would reset the connection.
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                stream.write_all(answer.as_bytes()).unwrap();
                first
            });
            assert_eq!(ask(address, "/healthz"), expected, "{answer}");
            assert_eq!(served.join().unwrap(), "GET /healthz HTTP/1.1");
        }
        assert_eq!(ask("127.0.0.1:1".parse().unwrap(), "/"), Health::Away);
    }
}
