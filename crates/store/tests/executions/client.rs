//! A client: it submits, looks at, cancels and deletes tasks, and may drop a table.

use lance_maintenance_api::identifier::{Delimiter, TableIdentifier};
use lance_maintenance_api::listing::ListTasksQuery;
use lance_maintenance_api::params::{
    BackfillColumnParams, CleanupParams, CompactParams, OptimizeIndicesParams, ScalarIndexParams,
    TaskParams, VectorIndexParams,
};
use lance_maintenance_api::task::{TaskId, TaskType};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::{TableRef, TaskAddress};
use lance_maintenance_store::catalog::Catalog;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::Tasks;

use crate::known::Known;
use crate::model::table_id;
use crate::scene::{Answer, Call, Scene};
use crate::world::{Client, SECOND};

pub struct Caller<'a> {
    pub scene: &'a Scene<'a>,
    pub client: &'a Client<'a>,
    /// Which client it is.
    pub me: u8,
}

pub fn params(task_type: TaskType) -> TaskParams {
    let vector = br#"{"name":"i","column":"c","index_type":"IVF_FLAT","metric_type":"l2"}"#;
    match task_type {
        TaskType::Compact => TaskParams::Compact(CompactParams::parse(b"", "reencode").unwrap()),
        TaskType::ScalarIndex => TaskParams::ScalarIndex(
            ScalarIndexParams::parse(br#"{"name":"i","column":"c","index_type":"BTREE"}"#).unwrap(),
        ),
        TaskType::VectorIndex => TaskParams::VectorIndex(VectorIndexParams::parse(vector).unwrap()),
        TaskType::OptimizeIndices => {
            TaskParams::OptimizeIndices(OptimizeIndicesParams::parse(b"").unwrap())
        }
        TaskType::Cleanup => {
            TaskParams::Cleanup(CleanupParams::parse(br#"{"retain_versions":1}"#).unwrap())
        }
        TaskType::BackfillColumn => {
            TaskParams::BackfillColumn(BackfillColumnParams::parse(br#"{"column":"c"}"#).unwrap())
        }
    }
}

pub fn identifier(table: usize) -> TableIdentifier {
    let text = format!("ns${}", table_id(table).to_lowercase());
    TableIdentifier::parse(&text, &Delimiter::default()).unwrap()
}

impl Caller<'_> {
    pub fn call(self) {
        let plan = self.scene.plan;
        for number in 0..plan.requests {
            let pause = plan.calm as usize / plan.requests;
            self.client.sleep(self.client.below(pause) as i64);
            if self.scene.is_calm(self.client) {
                break;
            }
            if self.client.per_mille(plan.cancels) {
                self.cancel();
                continue;
            }
            match self.client.below(100) {
                0..60 => self.submit(number as u8),
                60..72 => self.get(),
                72..84 => self.list(),
                84..97 => self.delete(),
                _ if plan.drops => self.drop_table(),
                _ => {}
            }
        }
        self.scene.model().clients_left -= 1;
    }

    fn submit(&self, number: u8) {
        let plan = self.scene.plan;
        let table = self.client.below(2);
        let kind = TaskType::ALL[self.client.below(if plan.quota < 9 { 2 } else { 5 })];
        let id = table_id(table);
        let reference = TableRef {
            id: id.clone(),
            arn: format!("arn/{id}"),
            location: format!("file:///w/{id}"),
        };
        let mut random = [0; 10];
        random[..2].copy_from_slice(&[self.me, number]);
        let answer = self.client.request(|client| -> Result<TaskId, ApiError> {
            let now = || client.now();
            let tasks = Tasks::new(client, &id);
            let task = tasks.submit(&reference, params(kind), "R", random, plan.quota, now)?;
            let dispatch = task.dispatch(1);
            let task_id = dispatch.task_id.clone();
            let mut model = self.scene.model();
            model.know(&task_id, table).created_at = Some(task.submitted.created_at);
            drop(model);
            if !self.hand_over(client, &dispatch) {
                Execution::new(client).note(&dispatch)?;
            }
            Ok(task_id)
        });
        self.client.note(|| format!("submit: {answer:?}"));
        let mut model = self.scene.model();
        match answer {
            Ok(task_id) => {
                model.know(&task_id, table).answered = true;
                let of_type = |known: &&Known| {
                    known.table == table && known.id.task_type() == kind && known.answered
                };
                let kept = model.tasks.iter().filter(of_type);
                let kept = kept.filter(|known| known.deletions == 0).count() as u64;
                if kept > plan.quota {
                    model
                        .wrong
                        .push(format!("{kept} tasks, more than the quota"));
                }
            }
            Err(error) if error.name == ErrorName::TaskQuotaExceeded => {}
            Err(error) => {
                self.expect(
                    error.name == ErrorName::ServiceUnavailable,
                    &error,
                    &mut model.wrong,
                );
            }
        }
    }

    fn expect(&self, is_right: bool, error: &ApiError, wrong: &mut Vec<String>) {
        if !is_right {
            wrong.push(format!("client {}: {error:?}", self.me));
        }
    }

    /// Hands a task to some worker: whether it is known to have it.
    fn hand_over(
        &self,
        client: &Client<'_>,
        dispatch: &lance_maintenance_dispatch::Dispatch,
    ) -> bool {
        let plan = self.scene.plan;
        if client.per_mille(plan.troubles.slow) {
            client.sleep(client.below(7 * SECOND as usize) as i64);
        }
        let worker = client.below(plan.workers);
        let lost = client.per_mille(plan.troubles.handover);
        if lost && client.per_mille(500) {
            return false;
        }
        if client.per_mille(plan.troubles.twice) {
            self.scene.dispatch_again(worker, dispatch);
        }
        let taken = self.scene.offer(client, worker, dispatch);
        taken && !lost
    }

    /// One of the tasks whose submits were answered, as it is known now.
    fn some_task(&self) -> Option<Known> {
        let model = self.scene.model();
        let answered: Vec<&Known> = model.tasks.iter().filter(|known| known.answered).collect();
        let count = answered.len();
        (count > 0).then(|| answered[self.client.below(count)].clone())
    }

    fn get(&self) {
        let Some(before) = self.some_task() else {
            return;
        };
        let found = self
            .client
            .request(|client| Tasks::new(client, &table_id(before.table)).get(&before.id));
        let mut model = self.scene.model();
        match found {
            Ok(_) if before.deleted => model.wrong.push(format!("{} is there again", before.id)),
            Ok(task) => {
                if task.status().is_terminal() {
                    model.ended(task.info(), before.table);
                } else if before.end.is_some() {
                    model
                        .wrong
                        .push(format!("{} goes on after its end", before.id));
                }
            }
            Err(error) => {
                let gone = model.know(&before.id, before.table).deletions > 0;
                let is_right = match error.name {
                    ErrorName::TaskNotFound => gone,
                    name => name == ErrorName::ServiceUnavailable,
                };
                self.expect(is_right, &error, &mut model.wrong);
            }
        }
    }

    fn list(&self) {
        let table = self.client.below(2);
        let task_type = TaskType::ALL[self.client.below(5)];
        let before = self.scene.model().tasks.clone();
        let query = ListTasksQuery {
            task_type,
            max_results: 100,
            below: None,
        };
        let listed = self
            .client
            .request(|client| Tasks::new(client, &table_id(table)).list(&query, false));
        let Ok(listed) = listed else {
            return;
        };
        let ids: Vec<TaskId> = listed
            .tasks
            .iter()
            .map(|info| info.task_id.clone())
            .collect();
        let mut model = self.scene.model();
        if ids.windows(2).any(|pair| pair[0].slot() <= pair[1].slot()) {
            model.wrong.push(format!("not newest first: {ids:?}"));
        }
        for known in before {
            let shown = ids.contains(&known.id);
            let belongs = known.table == table && known.id.task_type() == task_type;
            let gone = model.know(&known.id, known.table).deletions > 0;
            if belongs && known.answered && !gone && !shown || shown && known.deleted {
                model.wrong.push(format!("{known:?} and the list {ids:?}"));
            }
        }
        for info in listed
            .tasks
            .into_iter()
            .filter(|info| info.status.is_terminal())
        {
            model.ended(info, table);
        }
    }

    fn delete(&self) {
        let Some(before) = self.some_task() else {
            return;
        };
        let (id, table) = (&before.id, before.table);
        self.scene.model().know(id, table).deletions += 1;
        let deleted = self
            .client
            .request(|client| Tasks::new(client, &table_id(table)).delete(id, || client.now()));
        self.client.note(|| format!("delete {id}: {deleted:?}"));
        let mut model = self.scene.model();
        match deleted {
            Ok(()) if before.deleted => model.wrong.push(format!("{id} is deleted twice")),
            Ok(()) => model.know(id, table).deleted = true,
            Err(error) => match error.name {
                // Not this time.
                ErrorName::TaskStateConflict => model.know(id, table).deletions -= 1,
                ErrorName::ServiceUnavailable => {}
                name => {
                    // Another deletion was faster, or is cut short.
                    let is_right =
                        name == ErrorName::TaskNotFound && model.know(id, table).deletions > 1;
                    self.expect(is_right, &error, &mut model.wrong);
                }
            },
        }
    }

    fn cancel(&self) {
        let Some(before) = self.some_task() else {
            return;
        };
        let (id, table) = (&before.id, before.table);
        let troubles = &self.scene.plan.troubles;
        let call = Call::Cancel(TaskAddress {
            table_id: table_id(table),
            task_id: id.clone(),
        });
        self.scene.model().know(id, table).canceling = true;
        if self.client.per_mille(troubles.twice) {
            self.scene.leave_behind(self.client, call.clone());
        }
        let answer = self.client.request(|client| self.scene.make(&call, client));
        if self.client.per_mille(troubles.lost) {
            return;
        }
        let mut model = self.scene.model();
        match answer {
            Ok(Answer::Task(task)) => {
                model.know(id, table).answer_canceled(&task);
                let status = task.status();
                if before.deleted || before.end.is_some() && !status.is_terminal() {
                    let text = format!("{before:?} was canceled and is {task:?}");
                    model.wrong.push(text);
                } else if status.is_terminal() {
                    model.ended(task.info(), table);
                } else if !task.canceled {
                    model.wrong.push(format!("{id} is not canceled"));
                }
            }
            Ok(answer) => model.wrong.push(format!("cancel: {answer:?}")),
            Err(error) => {
                let gone = model.know(id, table).deletions > 0;
                let is_right = match error.name {
                    ErrorName::TaskNotFound => gone,
                    name => name == ErrorName::ServiceUnavailable,
                };
                self.expect(is_right, &error, &mut model.wrong);
            }
        }
    }

    fn drop_table(&self) {
        let table = self.client.below(2);
        self.scene.model().dropping[table] = true;
        let purge = self.client.per_mille(500);
        let dropped = self.client.request(|client| {
            Catalog::new(client, "b").drop_table(
                &identifier(table),
                &table_id(table),
                purge,
                || client.now(),
            )
        });
        self.client.note(|| format!("drop {table}: {dropped:?}"));
        if dropped.is_ok() {
            self.scene.model().dropped[table] = true;
        }
    }
}
