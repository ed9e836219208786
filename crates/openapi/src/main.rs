//! Prints the OpenAPI document: `cargo run -p lance-maintenance-openapi > docs/openapi.json`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(lance_maintenance_openapi::text().as_bytes())
}
