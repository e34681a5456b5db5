//! A name server over UDP that answers, or does not.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Types of records.
const A: u16 = 1;
const AAAA: u16 = 28;

/// What it does with questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers all.
    Well,
    /// Loses questions for IPv6 addresses.
    LosesAaaa,
    /// Says nothing at all.
    Silent,
}

struct Inner {
    mood: Mood,
    hosts: HashMap<String, Vec<IpAddr>>,
    /// These for the first question about it, the others for all further ones.
    first: HashMap<String, Vec<IpAddr>>,
    asked: Vec<(String, u16)>,
}

/// The server; it ends with the test's process. A name without an address of a type has none; one without any does
/// not exist.
#[derive(Clone)]
pub struct NameServer {
    inner: Arc<Mutex<Inner>>,
}

impl NameServer {
    /// On port 53 of an address of this machine.
    pub fn start(address: &str) -> NameServer {
        let socket = UdpSocket::bind((address, 53)).unwrap();
        let inner =
            Inner { mood: Mood::Well, hosts: HashMap::new(), first: HashMap::new(), asked: Vec::new() };
        let server = NameServer { inner: Arc::new(Mutex::new(inner)) };
        let answering = server.clone();
        std::thread::spawn(move || {
            let mut packet = [0; 1500];
            loop {
                let (length, from) = socket.recv_from(&mut packet).unwrap();
                if let Some(answer) = answering.answer(&packet[..length]) {
                    // Who asked may be gone with its address.
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        server
    }

    pub fn host(&self, name: &str, addresses: &[&str]) {
        self.inner.lock().unwrap().hosts.insert(name.to_owned(), parsed(addresses));
    }

    /// For the first question about each type.
    pub fn host_at_first(&self, name: &str, addresses: &[&str]) {
        self.inner.lock().unwrap().first.insert(name.to_owned(), parsed(addresses));
    }

    pub fn mood(&self, mood: Mood) {
        self.inner.lock().unwrap().mood = mood;
    }

    /// How often it was asked for the IPv4 address of a name.
    pub fn asked(&self, name: &str) -> usize {
        let asked = (name.to_owned(), A);
        self.inner.lock().unwrap().asked.iter().filter(|question| **question == asked).count()
    }

    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (name, kind, end) = read_question(question)?;
        let mut inner = self.inner.lock().unwrap();
        let before = inner.asked.contains(&(name.clone(), kind));
        inner.asked.push((name.clone(), kind));
        match inner.mood {
            Mood::Silent => return None,
            Mood::LosesAaaa if kind == AAAA => return None,
            _ => {}
        }
        let first = inner.first.get(&name).filter(|_| !before);
        let addresses = first.or_else(|| inner.hosts.get(&name));
        let fitting: Vec<&IpAddr> = addresses
            .into_iter()
            .flatten()
            .filter(|address| (kind == A && address.is_ipv4()) || (kind == AAAA && address.is_ipv6()))
            .collect();
        let mut answer = question[..2].to_vec();
        // An answer, recursion available; 3 is "no such name".
        answer.extend([0x81, if addresses.is_some() { 0x80 } else { 0x83 }]);
        answer.extend([0, 1, 0, fitting.len() as u8, 0, 0, 0, 0]);
        answer.extend(&question[12..end]);
        for address in fitting {
            let bytes = match address {
                IpAddr::V4(v4) => v4.octets().to_vec(),
                IpAddr::V6(v6) => v6.octets().to_vec(),
            };
            // The name of the question, its type, class IN, good for no time.
            answer.extend([0xc0, 12]);
            answer.extend(kind.to_be_bytes());
            answer.extend([0, 1, 0, 0, 0, 0, 0, bytes.len() as u8]);
            answer.extend(bytes);
        }
        Some(answer)
    }
}

fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().unwrap()).collect()
}

/// Name, type, and where the question ends.
fn read_question(packet: &[u8]) -> Option<(String, u16, usize)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]);
    Some((labels.join("."), kind, at + 4))
}
