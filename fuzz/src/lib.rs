//! What has to hold for every input of the pure crates. The targets in `fuzz_targets` hand the
//! fuzzer's inputs to these; here they are plain functions, so that a test can run the seeds.
//!
//! An input is a few bytes of choices and then text, as it is on the wire: so seeds can be written
//! down, and what the fuzzer finds can be read. `cargo run --example seeds` writes them from the
//! cases of the crates' tests.
//!
//! | module | what it holds |
//! |---|---|
//! | [`canonicalise`] | a signature is good for one request, and nothing else is believed |
//! | [`identifier`] | names, paths, queries, task ids and markers: what parses is written back alike |
//! | [`policy`] | policies and credentials: read back alike, and a decision is that of the statements |
//! | [`bodies`] | bodies of requests: what parses is stored and read back alike |
//! | `message`, `change`, `meaning` | what [`canonicalise`] signs, what it changes, what stays the same |

#![forbid(unsafe_code)]

pub mod bodies;
pub mod canonicalise;
mod change;
pub mod identifier;
mod meaning;
mod message;
pub mod policy;

use std::fmt;

use arbitrary::Arbitrary;

/// The part of an input that is as it is on the wire.
#[derive(Arbitrary, Clone, Copy)]
pub struct Wire<'a>(pub &'a [u8]);

impl fmt::Debug for Wire<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbitrary::Unstructured;
    use std::fs;
    use std::path::Path;

    fn run<'a, I: Arbitrary<'a>>(seed: &'a [u8], check: fn(&I) -> bool) -> bool {
        check(&I::arbitrary_take_rest(Unstructured::new(seed)).unwrap())
    }

    #[test]
    fn the_seeds_pass() {
        let targets: [(&str, fn(&[u8]) -> bool); 4] = [
            ("bodies", |seed| run(seed, bodies::check)),
            ("canonicalise", |seed| run(seed, canonicalise::check)),
            ("identifier", |seed| run(seed, identifier::check)),
            ("policy", |seed| run(seed, policy::check)),
        ];
        for (name, check) in targets {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("seeds")
                .join(name);
            let (mut seeds, mut useful) = (0, 0);
            for file in fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                println!("{}", path.display());
                useful += usize::from(check(&fs::read(path).unwrap()));
                seeds += 1;
            }
            // Those of mistakes are fewer.
            assert!(useful > seeds / 2, "{name}: {useful} of {seeds}");
        }
    }
}
