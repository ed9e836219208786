"""Indices on values and texts of tables that pylance wrote, used by pylance's queries."""

import lance
import pyarrow as pa
import pytest

import tables

# (type, column, what pylance calls it, conditions that the index answers)
VALUES = [
    ("BTREE", "id", "BTree", ["id = 17", "id BETWEEN 100 AND 250", "id IN (3, 30, 9999)"]),
    ("BTREE", "review", "BTree", ["review < 'A wine of Château Noir with l'"]),
    ("BTREE", "ink", "BTree", ["ink > 5.5", "ink IS NULL"]),
    ("BITMAP", "digit", "Bitmap", ["digit = 7", "digit IN (1, 2)", "digit >= 8"]),
    ("LABEL_LIST", "words", "LabelList", ["array_has(words, 'hue')", "array_has_any(words, ['ash', 'hue'])"]),
    ("NGRAM", "review", "NGram", ["contains(review, 'high alcohol')", "contains(review, 'eau N')"]),
    ("ZONEMAP", "id", "ZoneMap", ["id = 17", "id < 100"]),
    ("BLOOMFILTER", "id", "BloomFilter", ["id = 17", "id = 9999"]),
    ("bloomfilter", "review", "BloomFilter", ["review = 'nothing of the kind'"]),
]


@pytest.fixture(scope="module")
def wines(service):
    """A busy table that tests add indices to."""
    client = service.client()
    table, location = client.new_table()
    tables.busy(location)
    return client, table, location


def assert_indexed(result, location, name, column, kind):
    """The result, and what pylance says, of an index that covers every row."""
    found, rows = tables.index(location, name), tables.shape(location).rows
    assert (found.index_type, found.field_names, len(found.segments)) == (kind, [column], 1)
    assert found.num_rows_indexed == rows
    assert tables.unindexed(location, name) == 0
    assert result == {
        "index_name": name,
        "column": column,
        "index_type": result["index_type"],
        "index_uuid": str(found.segments[0].uuid),
        "num_indexed_rows": rows,
        "version": lance.dataset(location).version,
    }


@pytest.mark.parametrize("index_type, column, kind, conditions", VALUES)
def test_index_on_values(wines, index_type, column, kind, conditions):
    client, table, location = wines
    # One at a time, so that there is no doubt which one a query uses.
    for name in tables.index_names(location):
        lance.dataset(location).drop_index(name)
    rows = tables.digest(location)
    result = client.complete(table, "create_scalar_index", {"column": column, "index_type": index_type})
    assert result["index_type"] == index_type.upper()
    assert_indexed(result, location, f"{column}_idx", column, kind)
    for condition in conditions:
        assert "ScalarIndexQuery" in tables.plan(location, filter=condition), condition
        expected = tables.ids(location, filter=condition, use_scalar_index=False)
        assert tables.ids(location, filter=condition) == expected, condition
    assert tables.digest(location) == rows


REVIEWS = [
    "The Cellars smelled of old oak",
    "An old cellar, and a fresh barrel",
    "Weingut GRÜN: frischer Wein der alten Keller",
    "naïve notes of oak, oak and oak",
    "Donaudampfschifffahrtsgesellschaftskapitän",
]


@pytest.mark.parametrize(
    "options, query, found",
    [
        ({}, "cellar", {0, 1}),
        ({}, "naive", {3}),
        ({}, "the", set()),
        ({}, "grun", {2}),
        ({"stem": False}, "cellar", {1}),
        ({"stem": False}, "cellars", {0}),
        ({"remove_stop_words": False}, "the", {0}),
        ({"ascii_folding": False}, "naive", set()),
        ({"lower_case": False, "stem": False}, "cellars", set()),
        ({"lower_case": False, "stem": False}, "Cellars", {0}),
        ({"language": "German", "remove_stop_words": True}, "kellern", {2}),
        ({"language": "German"}, "der", set()),
        ({"max_token_length": 20}, "Donaudampfschifffahrtsgesellschaftskapitän", set()),
        ({"max_token_length": 100, "stem": False}, "Donaudampfschifffahrtsgesellschaftskapitän", {4}),
        ({"base_tokenizer": "whitespace", "stem": False}, "cellar", set()),
        # Three letters are a token: "ell" is in cellar, Keller and Gesellschaft.
        ({"base_tokenizer": "ngram"}, "ella", {0, 1, 2, 4}),
        ({"base_tokenizer": "raw", "stem": False}, "the cellars smelled of old oak", {0}),
    ],
)
def test_index_on_texts(client, options, query, found):
    table, location = client.new_table()
    tables.append(location, pa.table({"id": range(5), "text": REVIEWS}))
    body = {"column": "text", "index_type": "INVERTED"} | options
    result = client.complete(table, "create_scalar_index", body)
    assert_indexed(result, location, "text_idx", "text", "Inverted")
    details = tables.index(location, "text_idx").details
    assert {name: details[name] for name in options} == options
    assert set(tables.ids(location, full_text_query=query)) == found
    assert "MatchQuery" in tables.plan(location, full_text_query=query)


def test_index_on_texts_of_many_rows(wines):
    client, table, location = wines
    body = {"column": "review", "index_type": "FTS", "name": "reviews"}
    result = client.complete(table, "create_scalar_index", body)
    assert result["index_type"] == "INVERTED"
    assert_indexed(result, location, "reviews", "review", "Inverted")
    for word in ["hue", "Noir", "magnesium"]:
        expected = tables.ids(location, filter=f"review LIKE '%{word}%'", use_scalar_index=False)
        assert tables.ids(location, full_text_query=word, limit=10_000) == expected and expected


@pytest.mark.parametrize("with_position, possible", [(True, True), (False, False)])
def test_phrases_need_positions(client, with_position, possible):
    table, location = client.new_table()
    tables.append(location, pa.table({"id": range(5), "text": REVIEWS}))
    body = {"column": "text", "index_type": "INVERTED", "with_position": with_position}
    client.complete(table, "create_scalar_index", body)
    phrase = lance.query.PhraseQuery("old cellar", "text")
    if possible:
        assert tables.ids(location, full_text_query=phrase) == [1]
    else:
        with pytest.raises(ValueError, match="position"):
            tables.ids(location, full_text_query=phrase)


def test_index_on_lists_of_texts_and_on_fields_of_structs(client):
    table, location = client.new_table()
    places = [{"town": f"Ort {n % 7}", "zip": n} for n in range(50)]
    notes = [["old oak", f"note {n}"] if n % 2 else None for n in range(50)]
    tables.append(location, pa.table({"id": range(50), "place": places, "notes": notes}))
    for column, index_type, name in [
        ("place.zip", "BTREE", "place.zip_idx"),
        ("PLACE.Town", "BITMAP", "place.town_idx"),
        ("notes", "INVERTED", "notes_idx"),
    ]:
        body = {"column": column, "index_type": index_type}
        assert client.complete(table, "create_scalar_index", body)["index_name"] == name
        assert tables.unindexed(location, name) == 0
    assert "place.zip_idx" in tables.plan(location, filter="place.zip = 3")
    assert tables.ids(location, filter="place.zip = 3") == [3]
    assert tables.ids(location, full_text_query="oak", limit=100) == list(range(1, 50, 2))


@pytest.mark.parametrize("index_type, option", [("ZONEMAP", "rows_per_zone"), ("BTREE", "zone_size")])
def test_size_of_zones(client, index_type, option):
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 1000).select(["id"]))
    sizes = []
    for size in [1000, 10]:
        body = {"column": "id", "index_type": index_type, option: size}
        client.complete(table, "create_scalar_index", body)
        sizes.append(tables.index(location, "id_idx").total_size_bytes)
        assert tables.ids(location, filter="id = 500") == [500]
    # More zones take more place.
    assert sizes[1] > sizes[0]


def test_replaces_and_names(client):
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 200))

    def create(**body):
        return client.complete(table, "create_scalar_index", body)

    first = create(column="id")
    assert (first["index_name"], first["index_type"]) == ("id_idx", "BTREE")
    # An index on values is replaced unless the task says otherwise, by one of another type too.
    second = create(column="id", index_type="ZONEMAP")
    assert second["index_uuid"] != first["index_uuid"]
    assert_indexed(second, location, "id_idx", "id", "ZoneMap")
    create(column="id", index_name="by id", replace=False)
    create(column="ink", name="by ink", replace=False)
    assert sorted(tables.index_names(location)) == ["by id", "by ink", "id_idx"]

    version = lance.dataset(location).version
    for body in [{"column": "id", "replace": False}, {"column": "ink", "name": "id_idx"}]:
        error = client.fail(table, "create_scalar_index", body)
        assert (error["error"], error["code"]) == ("TableIndexAlreadyExists", 7)
        assert "'id_idx'" in error["detail"]
    assert lance.dataset(location).version == version
    assert_indexed(second | {"version": version}, location, "id_idx", "id", "ZoneMap")
