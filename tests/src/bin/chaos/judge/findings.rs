//! What is wrong, by kind.

use std::collections::BTreeMap;

/// How many of a kind are shown; all of them are in a file.
const SHOWN: usize = 5;

/// Everything that is wrong.
#[derive(Clone, Debug, Default)]
pub struct Findings(BTreeMap<&'static str, Vec<String>>);

impl Findings {
    /// Adds one.
    pub fn add(&mut self, kind: &'static str, what: String) {
        self.0.entry(kind).or_default().push(what);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them, with its kind.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let kinds = self.0.iter();
        kinds.flat_map(|(kind, all)| all.iter().map(|what| (*kind, what)))
    }

    /// Prints them, not too many of a kind.
    pub fn print(&self) {
        println!();
        if self.is_empty() {
            println!("nothing is wrong");
        }
        for (kind, all) in &self.0 {
            println!("WRONG {:5}  {kind}", all.len());
            for what in all.iter().take(SHOWN) {
                println!("        {what}");
            }
            if all.len() > SHOWN {
                println!("        and {} more", all.len() - SHOWN);
            }
        }
    }
}
