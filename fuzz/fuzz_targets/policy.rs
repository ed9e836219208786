#![no_main]

use lance_maintenance_fuzz::policy::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input<'_>| {
    check(&input);
});
