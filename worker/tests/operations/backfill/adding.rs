//! Adding columns, and what is refused.

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{Field, Fields};
use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::{BackfillColumnParams, TaskParams};
use lance_worker::operations::Limits;
use lance_worker::operations::backfill::binding::EXPRESSION_KEY;
use lance_worker::operations::backfill::size::MOST_OPERATORS;
use lance_worker::operations::run;
use lance_worker::storage::StorageOptions;
use lance_worker::tables::{Tables, columns};

use super::*;

fn computed(text: &str) -> NewContent {
    NewContent::Computed(text.to_owned())
}

fn expression(text: &str) -> NewContent {
    NewContent::Expression(text.to_owned())
}

#[tokio::test]
async fn columns_are_added_in_one_version() {
    let table = Table::write(numbers(0..1000), 100, false).await;
    table.delete("id = 3").await;
    let added = [
        ("c", expression("a + id")),
        ("D e", expression("upper(text)")),
    ];
    assert_eq!(add(&table, &added).await.unwrap(), 3);
    check_values(&table, |id| Some(id * 11)).await;
    let added = [("x", computed("a + 0.5")), ("y z", computed("text || 'b'"))];
    assert_eq!(add(&table, &added).await.unwrap(), 4);
    let dataset = table.open().await;
    let schema = dataset.schema();
    let types: Vec<String> = schema
        .fields
        .iter()
        .map(|field| format!("{} {}", field.name, field.data_type()))
        .collect();
    let expected = [
        "id Int64",
        "a Int64",
        "text Utf8",
        "c Int64",
        "D e Utf8",
        "x Float64",
        "y z Utf8",
    ];
    assert_eq!(types, expected);
    let x = schema
        .fields
        .iter()
        .find(|field| field.name == "x")
        .unwrap();
    assert_eq!(x.metadata.get(EXPRESSION_KEY).unwrap(), "a + 0.5");
    assert!(x.nullable);
    let nulls = dataset
        .count_rows(Some("x IS NULL".to_owned()))
        .await
        .unwrap();
    assert_eq!(nulls, 999);
    // Backticks, as everywhere.
    let result = fill(&table, r#"{"column":"`y z`"}"#).await;
    assert_eq!(result.rows_filled, 999);
    let filled = table.open().await;
    let found = filled
        .count_rows(Some("`y z` = text || 'b'".to_owned()))
        .await;
    assert_eq!(found.unwrap(), 999);
    check_files(&table, "added").await;
}

#[tokio::test]
async fn what_can_t_be_added() {
    use ErrorName::{InvalidInput, TableColumnNotFound};
    type Case<'a> = (&'a [(&'a str, NewContent)], ErrorName, &'a str);
    let table = Table::write(numbers(0..10), 100, false).await;
    let cases: [Case<'_>; 19] = [
        (
            &[("a", computed("id"))],
            InvalidInput,
            "a column 'a' already",
        ),
        (&[("c.d", computed("id"))], InvalidInput, "a dot"),
        (&[("_rowid", computed("id"))], InvalidInput, "Lance's own"),
        (&[("c", computed("id + "))], InvalidInput, "at its end"),
        (
            &[("c", computed("id + ) 1"))],
            InvalidInput,
            "line 1, column 6",
        ),
        (&[("c", computed("'abc"))], InvalidInput, "line 1, column 1"),
        (&[("c", computed("1 + nope(id)"))], InvalidInput, "nope"),
        (
            &[("c", computed("1 + gone"))],
            TableColumnNotFound,
            "line 1, column 5",
        ),
        (&[("c", computed("a, id"))], InvalidInput, "column"),
        (&[("c", computed("null"))], InvalidInput, "no type"),
        (
            &[("c", computed("1 + sum(id)"))],
            InvalidInput,
            "'sum', a function of many rows",
        ),
        (
            &[("c", expression("row_number() over (order by id)"))],
            InvalidInput,
            "'row_number', a function of many rows",
        ),
        (
            &[("c", expression("(select max(id) from t)"))],
            InvalidInput,
            "does not compile",
        ),
        (
            &[("c", computed("id + random()"))],
            InvalidInput,
            "'random', whose value is another one each time",
        ),
        (
            &[("c", computed("concat(text, cast(now() as varchar))"))],
            InvalidInput,
            "'now', whose value",
        ),
        (
            &[("c", expression("interval '1 day'"))],
            InvalidInput,
            "which Lance does not store",
        ),
        (
            &[("c", computed("interval '1 day'"))],
            InvalidInput,
            "which Lance does not store",
        ),
        (
            &[("c", expression("cast('x' || text as bigint)"))],
            InvalidInput,
            "x0",
        ),
        (
            &[("c", expression("id")), ("d", computed("id"))],
            InvalidInput,
            "can't be added at once",
        ),
    ];
    for (columns, name, text) in cases {
        let error = add(&table, columns).await.unwrap_err();
        println!("{columns:?}: {}", error.detail);
        assert_eq!(error.name, name, "{columns:?} {}", error.detail);
        assert!(error.detail.contains(text), "{}", error.detail);
        assert_eq!(table.open().await.version_id(), 1);
    }
}

#[tokio::test]
async fn what_can_t_be_filled() {
    use ErrorName::{InvalidInput, TableColumnNotFound, TableVersionNotFound};
    let table = declared(false).await;
    let version = table.open().await.version_id();
    let cases = [
        (r#"{"column":"gone"}"#, TableColumnNotFound, "'gone'"),
        (r#"{"column":"a"}"#, InvalidInput, "not a computed one"),
        (
            r#"{"column":"c","where":"id >"}"#,
            InvalidInput,
            "at its end",
        ),
        (
            r#"{"column":"c","where":"id = = 1 )"}"#,
            InvalidInput,
            "column",
        ),
        (
            r#"{"column":"c","where":"gone = 1"}"#,
            TableColumnNotFound,
            "column 1",
        ),
        (
            r#"{"column":"c","where":"random() < 0.5"}"#,
            InvalidInput,
            "'random'",
        ),
        (
            r#"{"column":"c","where":"id in (select id from t)"}"#,
            InvalidInput,
            "does not compile",
        ),
        (
            r#"{"column":"c","where":"id"}"#,
            InvalidInput,
            "of type Int64",
        ),
        (
            r#"{"column":"c","read_version":99}"#,
            TableVersionNotFound,
            "99",
        ),
    ];
    let place = Tables::new(StorageOptions::default(), Limits::default())
        .place(&table.uri())
        .await
        .unwrap();
    for (body, name, text) in cases {
        let error = run(&backfill(body), &table.context()).await.unwrap_err();
        println!("{body}: {}", error.detail);
        assert_eq!(error.error, name, "{body} {}", error.detail);
        assert!(error.detail.contains(text), "{}", error.detail);
        let TaskParams::BackfillColumn(params) = backfill(body) else {
            unreachable!()
        };
        let checked = columns::check_backfill(&place, &params).await.unwrap_err();
        assert_eq!((checked.name, checked.detail), (name, error.detail));
    }
    let fine = BackfillColumnParams::parse(br#"{"column":"C","where":"id > 3"}"#).unwrap();
    columns::check_backfill(&place, &fine).await.unwrap();
    assert_eq!(table.open().await.version_id(), version);
    check_files(&table, "refused").await;
}

#[tokio::test]
async fn an_expression_that_no_longer_compiles() {
    let table = declared(false).await;
    table.open().await.drop_columns(&["a"]).await.unwrap();
    let error = run(&backfill(r#"{"column":"c"}"#), &table.context())
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::TableColumnNotFound, "{error}");
}

/// `id`, and `s` with `x`, which is five times that, and `y z`.
fn nested(ids: Range<i64>) -> RecordBatch {
    let x: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.clone().map(|id| id * 5)));
    let y: ArrayRef = Arc::new(StringArray::from_iter_values(
        ids.clone().map(|id| format!("t{id}")),
    ));
    let fields = Fields::from(vec![
        Field::new("x", x.data_type().clone(), true),
        Field::new("y z", y.data_type().clone(), true),
    ]);
    let s = StructArray::new(fields, vec![x, y], None);
    batch(vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ("s", Arc::new(s)),
    ])
}

#[tokio::test]
async fn parts_of_columns_are_inputs() {
    for stable in [false, true] {
        let table = Table::write(nested(0..300), 100, stable).await;
        let columns = [
            ("c", computed("s.x + id")),
            ("Text of", computed("concat(s.`y z`, '!')")),
        ];
        add(&table, &columns).await.unwrap();
        add(&table, &[("d", expression("s.x - id"))]).await.unwrap();
        let result = fill(&table, r#"{"column":"c","where":"s.`y z` <> 't7'"}"#).await;
        assert_eq!(result.rows_filled, 299);
        check_values(&table, |id| (id != 7).then_some(id * 6)).await;
        let result = fill(&table, r#"{"column":"`Text of`"}"#).await;
        assert_eq!(result.rows_filled, 300);
        let filled = table.open().await;
        let found = filled.count_rows(Some("`Text of` = concat(s.`y z`, '!')".to_owned()));
        assert_eq!(found.await.unwrap(), 300);
        let d = values(&table, "d").await;
        assert!(d.iter().all(|(id, d)| *d == Some(id * 4)));
        // A part of a column is not a computed one.
        for path in ["s.x", "s.`y z`", "s"] {
            let body = format!(r#"{{"column":"{path}"}}"#);
            let error = run(&backfill(&body), &table.context()).await.unwrap_err();
            assert_eq!(error.error, ErrorName::InvalidInput, "{error}");
        }
        let error = run(&backfill(r#"{"column":"s.`gone z`"}"#), &table.context()).await;
        assert_eq!(error.unwrap_err().error, ErrorName::TableColumnNotFound);
        check_files(&table, "nested").await;
    }
}

#[tokio::test]
async fn what_sql_means() {
    type Value = fn(i64) -> Option<i64>;
    let table = Table::write(numbers(0..100), 50, false).await;
    let cases: [(&str, Value); 8] = [
        ("CASE WHEN id = 3 THEN -1 ELSE id END", |id| {
            Some(if id == 3 { -1 } else { id })
        }),
        ("nullif(id, 3)", |id| (id != 3).then_some(id)),
        ("coalesce(nullif(id, 3), 7) * 2", |id| {
            Some(if id == 3 { 14 } else { id * 2 })
        }),
        ("cast(a * 0.5 + 0.25 as bigint)", |id| Some(id * 5)),
        ("cast(floor(a / 7) as bigint) + a % 7", |id| {
            Some(id * 10 / 7 + id * 10 % 7)
        }),
        ("cast(length(text || 'x') as bigint)", |id| {
            Some(id.to_string().len() as i64 + 1)
        }),
        ("\"id\" + `a`", |id| Some(id * 11)),
        ("cast(7 as bigint)", |_| Some(7)),
    ];
    for (n, (text, expected)) in cases.into_iter().enumerate() {
        let (at_once, later) = (format!("e{n}"), format!("f{n}"));
        let name = add(&table, &[(&at_once, expression(text))]).await;
        name.unwrap_or_else(|error| panic!("{text}: {error}"));
        declare(&table, &later, text).await;
        fill(&table, &format!(r#"{{"column":"{later}"}}"#)).await;
        for column in [at_once, later] {
            for (id, value) in values(&table, &column).await {
                assert_eq!(value, expected(id), "{text} {column} {id}");
            }
        }
    }
}

#[tokio::test]
async fn values_that_take_too_long_are_given_up() {
    let table = Table::write(numbers(0..100), 50, false).await;
    let place = Tables::new(StorageOptions::default(), Limits::default())
        .place(&table.uri())
        .await
        .unwrap();
    let mut request = AddColumns {
        location: table.uri(),
        branch: None,
        columns: vec![NewColumn {
            name: "c".to_owned(),
            content: expression("a + id"),
        }],
    };
    let error = columns::add(&place, &request, Duration::ZERO).await;
    let error = error.unwrap_err();
    assert_eq!(error.name, ErrorName::InvalidInput);
    assert!(
        error.detail.contains("add them as 'computed'"),
        "{}",
        error.detail
    );
    assert_eq!(table.open().await.version_id(), 1);
    // One that is not computed yet takes no time.
    request.columns[0].content = computed("a + id");
    columns::add(&place, &request, Duration::ZERO)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_changes_is_fine_once() {
    let table = Table::write(numbers(0..100), 50, false).await;
    let once = [("c", expression("uuid()")), ("d", expression("now()"))];
    add(&table, &once).await.unwrap();
    declare(&table, "e", "a + id").await;
    let result = fill(&table, r#"{"column":"e","where":"d <= now()"}"#).await;
    assert_eq!(result.rows_filled, 100);
}

#[tokio::test]
async fn a_branch_has_columns_of_its_own() {
    let table = Table::write(numbers(0..100), 50, false).await;
    let mut dataset = table.open().await;
    dataset.create_branch("dev", 1, None).await.unwrap();
    let place = Tables::new(StorageOptions::default(), Limits::default())
        .place(&table.uri())
        .await
        .unwrap();
    for (name, content) in [("c", expression("a + id")), ("d", computed("a"))] {
        let mut request = AddColumns {
            location: table.uri(),
            branch: Some("dev".to_owned()),
            columns: vec![NewColumn {
                name: name.to_owned(),
                content,
            }],
        };
        columns::add(&place, &request, LONG).await.unwrap();
        request.branch = Some("gone".to_owned());
        let error = columns::add(&place, &request, LONG).await.unwrap_err();
        assert_eq!(error.name, ErrorName::TableBranchNotFound);
    }
    let branch = table.open().await.checkout_branch("dev").await.unwrap();
    let right = branch.count_rows(Some("c = a + id AND d IS NULL".to_owned()));
    assert_eq!(right.await.unwrap(), 100);
    assert!(table.open().await.schema().field("c").is_none());
    assert_eq!(table.open().await.version_id(), 1);
}

#[tokio::test]
async fn how_large_sql_may_be() {
    let table = Table::write(numbers(0..10), 10, false).await;
    // What a chain begins with, a link, and how many operators both have.
    let cases = [
        ("a", " + 1", (0, 1)),
        ("a", " + a", (0, 1)),
        ("a = 1", " OR a = 2", (1, 2)),
        ("a < 7", " AND a < 7", (1, 2)),
        ("'x'", " || 'x'", (0, 1)),
        ("1 = 1", " = true", (1, 1)),
        ("a", "::bigint", (0, 2)),
        ("a", " IS NULL", (0, 1)),
    ];
    for (first, link, (begins, each)) in cases {
        let most = (MOST_OPERATORS - begins) / each;
        let chain = |links: usize| format!("{first}{}", link.repeat(links));
        for content in [
            NewContent::Expression(chain(most)),
            NewContent::Computed(chain(most)),
        ] {
            let added = add(&table, &[("c", content)]).await;
            added.unwrap_or_else(|error| panic!("{link} {error:?}"));
            fill_if_computed(&table).await;
            table.open().await.drop_columns(&["c"]).await.unwrap();
        }
        let content = NewContent::Computed(chain(most + 1));
        let error = add(&table, &[("c", content)]).await.unwrap_err();
        assert_eq!(error.name, ErrorName::InvalidInput, "{link}");
        assert!(error.detail.contains("too large"), "{link} {error:?}");
    }
    // These the parser or the planner refuses.
    for (begin, end) in [
        ("abs(", ")"),
        ("- ", ""),
        ("(", ")"),
        ("NOT ", ""),
        ("", "[1]"),
        ("", ".b"),
    ] {
        let text = format!("{}a{}", begin.repeat(390), end.repeat(390));
        let error = add(&table, &[("c", NewContent::Computed(text))])
            .await
            .unwrap_err();
        assert_eq!(error.name, ErrorName::InvalidInput, "{begin} {end}");
    }
    // Lists may be long.
    let many: String = (0..20_000).map(|n| format!(", {n}")).collect();
    let expression = format!("CASE WHEN a IN (-1{many}) THEN a{} END", " + 1".repeat(300));
    declare(&table, "c", &expression).await;
    let body = format!(
        r#"{{"column":"c","where":"a < 70{}"}}"#,
        " AND a < 70".repeat(199)
    );
    assert_eq!(fill(&table, &body).await.rows_filled, 7);
    check_values(&table, |id| (id < 7).then_some(id * 10 + 300)).await;
}

async fn fill_if_computed(table: &Table) {
    let dataset = table.open().await;
    let field = dataset.schema().field("c").unwrap();
    if field.metadata.contains_key(EXPRESSION_KEY) {
        fill(table, r#"{"column":"c"}"#).await;
    }
}
