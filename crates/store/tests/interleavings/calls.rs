//! What scripts ask of the catalog, and what each answer says.

use lance_maintenance_api::identifier::{NamespaceName, TableIdentifier, TableName};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::Purged;
use lance_maintenance_store::catalog::{
    Catalog, NamespaceRecord, Origin, Purges, TableRecord, find_table,
};
use serde_json::Value;

use crate::answers::{
    create, drop_namespace, drop_table, find, get, list, make_namespace, query, rename, set_policy,
};
use crate::model::{Locations, Name, Query, Unit, names};
use crate::world::Client;

const BUCKET: &str = "b";

/// One request.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Create(Name, u8),
    /// A table's UUID, where one is given, stands for one that the caller remembers; otherwise it
    /// looks the name up first, as the components do.
    Drop(Name, Option<u8>, bool),
    Rename(Name, Option<u8>, Name),
    Policy(Name, Option<u8>, u8),
    Get(Name),
    List(u8),
    Find(u8),
    MakeNamespace(u8, u8),
    DropNamespace(u8, bool, u8),
    Purge,
}

/// What was asked and answered.
#[derive(Debug, Default)]
pub struct Told {
    pub units: Vec<Unit>,
    /// The requests in words, for whoever looks for the mistake.
    pub lines: Vec<String>,
    /// What can't be right whatever others did.
    pub wrong: Vec<String>,
    /// Tables that were dropped with their data.
    pub dropped: Vec<u8>,
    /// Those whose data a worker was told to remove.
    pub purged: Vec<u8>,
}

/// Somebody who makes requests.
pub struct Caller<'a> {
    pub client: Client<'a>,
    pub locations: &'a Locations,
    pub told: Told,
}

pub fn namespace(ns: u8) -> NamespaceName {
    NamespaceName::parse(["n", "m"][ns as usize]).unwrap()
}

pub fn identifier((ns, table): Name) -> TableIdentifier {
    TableIdentifier {
        namespace: namespace(ns),
        table: TableName::parse(["x", "y"][table as usize]).unwrap(),
    }
}

pub fn uuid(id: u8) -> String {
    format!("T{id}")
}

pub fn number(table: &TableRecord) -> u8 {
    table.id[1..].parse().unwrap()
}

pub fn policy(table: &TableRecord) -> u8 {
    table.policy.as_ref().and_then(Value::as_u64).unwrap_or(0) as u8
}

pub fn name_of(table: &TableRecord) -> Name {
    let id = table.identifier().unwrap();
    names().find(|name| identifier(*name) == id).unwrap()
}

fn location(place: u8) -> String {
    format!("file:///{place}.lance")
}

fn answer<T>(outcome: Result<T, ApiError>) -> Result<T, ErrorName> {
    outcome.map_err(|error| error.name)
}

impl<'a> Caller<'a> {
    pub fn new(client: Client<'a>, locations: &'a Locations) -> Self {
        Self {
            client,
            locations,
            told: Told::default(),
        }
    }

    fn catalog(&self) -> Catalog<'_, Client<'a>> {
        Catalog::new(&self.client, BUCKET)
    }

    /// Makes a request.
    pub fn make(&mut self, call: Call) {
        match call {
            Call::Drop(name, None, purge) => {
                if let Some(id) = self.look_up(name) {
                    self.request(Call::Drop(name, Some(id), purge));
                }
            }
            Call::Rename(name, None, to) => {
                if let Some(id) = self.look_up(name) {
                    self.request(Call::Rename(name, Some(id), to));
                }
            }
            Call::Policy(name, None, value) => {
                if let Some(id) = self.look_up(name) {
                    self.request(Call::Policy(name, Some(id), value));
                }
            }
            Call::Purge => self.purge(),
            call => {
                self.request(call);
            }
        }
    }

    fn look_up(&mut self, name: Name) -> Option<u8> {
        self.request(Call::Get(name))
    }

    /// A table that was shown: it must be what it was created as.
    fn check(&mut self, table: &TableRecord, name: Option<Name>) {
        let id = number(table);
        let right = table.location == location(self.locations[id as usize])
            && name.is_none_or(|name| name == name_of(table));
        if !right {
            self.told.wrong.push(format!("asked {name:?}: {table:?}"));
        }
    }

    /// Makes one request; the table that was found, if it looked for one.
    fn request(&mut self, call: Call) -> Option<u8> {
        let from = self.client.begin();
        if self.client.is_dead() {
            return None;
        }
        self.client.note(|| format!("{call:?}"));
        let client = self.client;
        let now = || client.now();
        let mut found = None;
        let (said, units) = match call {
            Call::Create(name, id) => {
                let id_of = identifier(name);
                let place = location(self.locations[id as usize]);
                let record = TableRecord::new(
                    &id_of,
                    uuid(id),
                    place,
                    Origin::Declared,
                    Default::default(),
                );
                let outcome = answer(self.catalog().create_table(&id_of, &record, now));
                let units = create(name, id, outcome);
                (format!("{outcome:?}"), units)
            }
            Call::Drop(name, id, purge) => {
                let id = id.unwrap_or_default();
                let catalog = self.catalog();
                let outcome = answer(catalog.drop_table(&identifier(name), &uuid(id), purge, now));
                if let Ok(table) = &outcome {
                    self.check(table, Some(name));
                }
                let outcome = outcome.map(|table| policy(&table));
                if outcome.is_ok() && purge {
                    self.told.dropped.push(id);
                }
                (format!("{outcome:?}"), drop_table(name, id, outcome))
            }
            Call::Rename(name, id, to) => {
                let id = id.unwrap_or_default();
                let (old, new) = (identifier(name), identifier(to));
                let outcome = answer(self.catalog().rename_table(&old, &uuid(id), &new, now));
                (format!("{outcome:?}"), rename(name, id, to, outcome))
            }
            Call::Policy(name, id, value) => {
                let id = id.unwrap_or_default();
                let catalog = self.catalog();
                let put = Some(Value::from(value));
                let outcome =
                    answer(catalog.set_table_policy(&identifier(name), &uuid(id), put, now));
                (format!("{outcome:?}"), set_policy(name, id, value, outcome))
            }
            Call::Get(name) => {
                let outcome = answer(self.catalog().table(&identifier(name)));
                if let Ok(table) = &outcome {
                    self.check(table, Some(name));
                }
                let outcome = outcome.map(|table| (number(&table), policy(&table)));
                found = outcome.ok().map(|(id, _)| id);
                (format!("{outcome:?}"), get(name, outcome))
            }
            Call::Find(id) => {
                let outcome = answer(find_table(&client, &uuid(id)).map_err(ApiError::from));
                if let Ok(Some(table)) = &outcome {
                    self.check(table, None);
                }
                let outcome =
                    outcome.map(|table| table.map(|table| (name_of(&table), policy(&table))));
                (format!("{outcome:?}"), find(id, outcome))
            }
            Call::List(ns) => {
                let outcome = answer(self.catalog().tables(&namespace(ns), None, 10));
                let outcome = outcome.map(|page| {
                    let entries = page.entries.into_iter();
                    entries.map(|(_, table)| table).collect::<Vec<_>>()
                });
                for table in outcome.iter().flatten() {
                    self.check(table, None);
                }
                let outcome = outcome.map(|tables| {
                    let shown =
                        |table: &TableRecord| (name_of(table), number(table), policy(table));
                    tables.iter().map(shown).collect::<Vec<_>>()
                });
                self.check_listed(&outcome);
                (format!("{outcome:?}"), list(ns, &outcome))
            }
            Call::MakeNamespace(ns, id) => {
                let record = NamespaceRecord {
                    id: format!("N{id}"),
                    name: namespace(ns).as_str().to_owned(),
                    ..NamespaceRecord::default()
                };
                let outcome = answer(self.catalog().create_namespace(&record, now));
                (format!("{outcome:?}"), make_namespace(ns, outcome))
            }
            Call::DropNamespace(ns, cascade, by) => {
                let all = |_: &TableRecord| Ok(());
                let may_drop = cascade.then_some(&all as _);
                let by = format!("R{by}");
                let outcome = self
                    .catalog()
                    .drop_namespace(&namespace(ns), &by, now, may_drop);
                let outcome = answer(outcome).map(drop);
                (format!("{outcome:?}"), drop_namespace(ns, cascade, outcome))
            }
            Call::Purge => return None,
        };
        let to = self.client.tick();
        self.client.note(|| format!("{call:?}: {said}"));
        self.told
            .lines
            .push(format!("{from:>4}..{to:<4} {call:?}: {said}"));
        match units {
            Some(units) => self.tell(from, to, units),
            None => self
                .told
                .wrong
                .push(format!("{call:?} was answered {said}")),
        }
        found
    }

    fn tell(&mut self, from: u32, to: u32, units: Vec<Unit>) {
        self.told.units.extend(units.into_iter().map(|unit| Unit {
            from,
            to: unit.to.max(to),
            ..unit
        }));
    }

    fn check_listed(&mut self, outcome: &Result<Vec<(Name, u8, u8)>, ErrorName>) {
        let Ok(listed) = outcome else { return };
        let mut ids: Vec<u8> = listed.iter().map(|(_, id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() != listed.len() {
            self.told.wrong.push(format!("listed twice: {listed:?}"));
        }
    }

    /// A worker removes the data of dropped tables.
    fn purge(&mut self) {
        let from = self.client.begin();
        let now = self.client.now();
        let purges = Purges::new(&self.client);
        let waiting = purges.waiting(now).unwrap_or_default();
        let asked = self.client.tick();
        let mut ids: Vec<u8> = Vec::new();
        for purge in waiting {
            ids.push(purge.table_id[1..].parse().unwrap());
            let purged = Purged {
                worker_id: "w".to_owned(),
                table_id: purge.table_id,
            };
            let _ = purges.done(&purged, self.client.now());
        }
        let done = self.client.tick();
        self.told
            .lines
            .push(format!("{from:>4}..{done:<4} Purge: {ids:?}"));
        self.told.purged.extend(&ids);
        for id in ids {
            self.tell(
                from,
                asked,
                vec![query(Query::Absent(id)), query(Query::Vacated(id))],
            );
            self.tell(asked, done, vec![query(Query::Vacated(id))]);
        }
    }
}
