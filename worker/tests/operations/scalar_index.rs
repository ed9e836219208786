use std::sync::Arc;

use arrow_array::{Int64Array, StructArray};
use arrow_schema::{DataType, Field};
use lance::index::DatasetIndexExt;
use lance_index::scalar::FullTextSearchQuery;
use lance_maintenance_api::ErrorName;
use lance_worker::operations::run;
use serde_json::json;

use crate::support::{Table, batch, filter_plan, rows, scalar};

#[tokio::test]
async fn each_type_is_listed_complete_and_used() {
    let table = Table::with_rows(0..2000, 500).await;
    let before = table.contents().await;
    // Column, type, a filter, the rows that it finds.
    let cases = [
        ("id", "BTREE", "id = 77", 1),
        ("kind", "BITMAP", "kind = 'kind3'", 200),
        ("tags", "LABEL_LIST", "array_contains(tags, 2)", 666),
        ("text", "NGRAM", "contains(text, 'number1999')", 1),
        ("id", "ZONEMAP", "id < 10", 10),
        ("id", "BLOOMFILTER", "id = 1500", 1),
    ];
    for (column, index_type, filter, found) in cases {
        let name = format!("{index_type}_of_{column}");
        let result = table
            .run(scalar(&format!(
                r#"{{"column":"{column}","index_type":"{index_type}","name":"{name}"}}"#
            )))
            .await
            .unwrap();
        let dataset = table.open().await;
        let segments = dataset.load_indices_by_name(&name).await.unwrap();
        assert_eq!(segments.len(), 1);
        assert_eq!(
            result,
            json!({"index_name": name, "column": column, "index_type": index_type,
                   "index_uuid": segments[0].uuid.to_string(), "num_indexed_rows": 2000,
                   "version": dataset.version_id()})
        );
        let plan = filter_plan(&dataset, filter).await;
        assert!(plan.contains("ScalarIndexQuery"), "{index_type}: {plan}");
        assert_eq!(
            dataset.count_rows(Some(filter.to_owned())).await.unwrap(),
            found
        );
        let mut dataset = dataset;
        dataset.drop_index(&name).await.unwrap();
    }
    assert_eq!(table.contents().await, before);
}

#[tokio::test]
async fn texts_are_found_as_the_options_say() {
    let table = Table::with_rows(0..300, 100).await;
    let search = |query: &'static str| {
        let table = &table;
        async move {
            let mut scanner = table.open().await.scan();
            scanner
                .full_text_search(FullTextSearchQuery::new(query.to_owned()))
                .unwrap();
            scanner.try_into_batch().await.unwrap().num_rows()
        }
    };
    let result = table
        .run(scalar(r#"{"column":"text","index_type":"FTS"}"#))
        .await
        .unwrap();
    assert_eq!(
        (&result["index_name"], &result["index_type"]),
        (&json!("text_idx"), &json!("INVERTED"))
    );
    assert_eq!(result["num_indexed_rows"], 300);
    assert_eq!(search("number299").await, 1);
    // Stemmed: jumps, jump, jumping. A stop word: the.
    assert_eq!(search("jumping").await, 300);
    assert_eq!(search("the").await, 0);

    table
        .run(scalar(
            r#"{"column":"text","index_type":"INVERTED","stem":false,"remove_stop_words":false,"with_position":true}"#,
        ))
        .await
        .unwrap();
    assert_eq!(search("jumping").await, 0);
    assert_eq!(search("the").await, 300);
    assert_eq!(table.open().await.load_indices().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_that_exists() {
    let table = Table::with_rows(0..100, 100).await;
    let first = table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
    assert_eq!(first["index_name"], "id_idx");

    let version = table.open().await.version_id();
    let error = table
        .run(scalar(r#"{"column":"id","replace":false}"#))
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::TableIndexAlreadyExists, "{error}");
    let error = table
        .run(scalar(r#"{"column":"kind","name":"id_idx"}"#))
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::TableIndexAlreadyExists, "{error}");
    assert_eq!(table.open().await.version_id(), version);

    // Replaced, by another type too, it is there once.
    for index_type in ["BTREE", "BITMAP", "ZONEMAP"] {
        table
            .run(scalar(&format!(
                r#"{{"column":"id","index_type":"{index_type}"}}"#
            )))
            .await
            .unwrap();
        let indices = table.open().await.load_indices().await.unwrap();
        assert_eq!(indices.len(), 1, "{index_type}");
    }
    let error = table
        .run(scalar(r#"{"column":"id","name":"__lance_x"}"#))
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::InvalidInput, "{error}");
}

#[tokio::test]
async fn columns_that_are_not_there_or_do_not_fit() {
    let table = Table::with_rows(0..100, 100).await;
    for (body, name, words) in [
        (
            r#"{"column":"nope"}"#,
            ErrorName::TableColumnNotFound,
            "'id', 'kind'",
        ),
        (
            r#"{"column":"id.x"}"#,
            ErrorName::TableColumnNotFound,
            "'id.x'",
        ),
        (
            r#"{"column":"vector"}"#,
            ErrorName::InvalidInput,
            "'vector'",
        ),
        (
            r#"{"column":"tags","index_type":"BITMAP"}"#,
            ErrorName::InvalidInput,
            "'tags'",
        ),
        (
            r#"{"column":"id","index_type":"INVERTED"}"#,
            ErrorName::InvalidInput,
            "strings",
        ),
        (
            r#"{"column":"id","index_type":"NGRAM"}"#,
            ErrorName::InvalidInput,
            "strings",
        ),
        (
            r#"{"column":"id","index_type":"LABEL_LIST"}"#,
            ErrorName::InvalidInput,
            "lists",
        ),
        (
            r#"{"column":"text","index_type":"FTS","language":"Klingon"}"#,
            ErrorName::InvalidInput,
            "Klingon",
        ),
        (
            r#"{"column":"text","index_type":"FTS","base_tokenizer":"lindera/nowhere"}"#,
            ErrorName::InvalidInput,
            "lindera",
        ),
    ] {
        let error = table.run(scalar(body)).await.unwrap_err();
        assert_eq!(error.error, name, "{body}: {error}");
        assert!(error.detail.contains(words), "{body}: {error}");
        assert!(!error.detail.contains(".rs"), "{error}");
    }
    assert_eq!(table.open().await.version_id(), 1);
    assert_eq!(table.litter().await, Default::default());
}

#[tokio::test]
async fn nested_and_oddly_named_columns() {
    let field = Arc::new(Field::new("user", DataType::Int64, true));
    let user = StructArray::from(vec![(field, Arc::new(Int64Array::from_iter(0..50)) as _)]);
    let table = Table::write(
        batch(vec![
            ("Meta", Arc::new(user)),
            ("a-b", Arc::new(Int64Array::from_iter(0..50))),
        ]),
        100,
        false,
    )
    .await;
    let result = table
        .run(scalar(r#"{"column":"meta.user"}"#))
        .await
        .unwrap();
    assert_eq!(result["index_name"], "Meta.user_idx");
    assert_eq!(result["num_indexed_rows"], 50);
    let result = table.run(scalar(r#"{"column":"a-b"}"#)).await.unwrap();
    assert_eq!(result["index_name"], "a-b_idx");
    let dataset = table.open().await;
    assert_eq!(
        dataset
            .count_rows(Some("Meta.user = 7".into()))
            .await
            .unwrap(),
        1
    );
}

#[tokio::test]
async fn an_empty_table_has_the_index_with_no_rows() {
    let table = Table::write(rows(0..0), 100, false).await;
    for (column, index_type) in [
        ("id", "BTREE"),
        ("kind", "BITMAP"),
        ("tags", "LABEL_LIST"),
        ("text", "INVERTED"),
        ("text", "NGRAM"),
        ("id", "ZONEMAP"),
        ("id", "BLOOMFILTER"),
    ] {
        let result = table
            .run(scalar(&format!(
                r#"{{"column":"{column}","index_type":"{index_type}","name":"{index_type}"}}"#
            )))
            .await
            .unwrap();
        assert_eq!(result["num_indexed_rows"], 0, "{index_type}");
        let found = table
            .open()
            .await
            .load_indices_by_name(index_type)
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "{index_type}");
    }
    // And it fills up.
    table.append(0..100).await;
    let result = table.run(crate::support::optimize("{}")).await.unwrap();
    for index in result["indices"].as_array().unwrap() {
        assert_eq!(index["num_unindexed_rows"], 0, "{result}");
        assert_eq!(index["num_indexed_rows"], 100, "{result}");
    }
}

#[tokio::test]
async fn creations_at_the_same_time_leave_one_index() {
    let table = Table::with_rows(0..1000, 100).await;
    let runs = (0..8).map(|_| async {
        let mut ctx = table.context();
        ctx.limits.max_conflict_retries = 20;
        run(&scalar(r#"{"column":"id"}"#), &ctx).await
    });
    for outcome in futures::future::join_all(runs).await {
        outcome.unwrap();
    }
    let dataset = table.open().await;
    assert_eq!(dataset.load_indices().await.unwrap().len(), 1);
    dataset.validate().await.unwrap();
    assert_eq!(table.litter().await, Default::default());

    // Without replace, one of them is first.
    let runs = (0..4).map(|_| table.run(scalar(r#"{"column":"kind","replace":false}"#)));
    let outcomes = futures::future::join_all(runs).await;
    assert_eq!(
        outcomes.iter().filter(|outcome| outcome.is_ok()).count(),
        1,
        "{outcomes:?}"
    );
    for error in outcomes.into_iter().filter_map(Result::err) {
        assert_eq!(error.error, ErrorName::TableIndexAlreadyExists, "{error}");
    }
    assert_eq!(table.litter().await, Default::default());
}

#[tokio::test]
async fn a_second_attempt_reports_the_index_of_the_first() {
    let table = Table::with_rows(0..1000, 100).await;
    let mut ctx = table.context();
    let first = run(&scalar(r#"{"column":"id"}"#), &ctx).await.unwrap();
    table.append(1000..1010).await;
    ctx.attempt = 2;
    let second = run(&scalar(r#"{"column":"id"}"#), &ctx).await.unwrap();
    assert_eq!(second, first);
}
