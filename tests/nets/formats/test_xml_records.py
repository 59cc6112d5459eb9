"""Records as S-Net's XML."""

import io
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.nets.errors import RecordError
from callboard.nets.formats.xml_records import read_xml, write_xml

TWO_DOCUMENTS = """<?xml version="1.0" encoding="ISO-8859-1" ?>
<record xmlns="snet-home.org" type="data" mode="textual" interface="C4SNet">
  <field label="n" >(int)7</field>
  <tag   label="first"  >1</tag>
</record>
<?xml version="1.0" encoding="ISO-8859-1" ?>
<!-- the second -->
<record type="data" mode="textual">
  <field
    label="matrix" interface="C4SNet">(double[4]) 1, 2.5,
                                       -3, 4e1</field>
  <btag label="owner"> 2 </btag>
</record>
<record type="terminate" />
<record> ignored
"""


def read(text: str) -> list[dict[str, Any]]:
    return list(read_xml(text.splitlines(keepends=True)))


def field(text: str) -> Any:
    (record,) = read(f'<record><field label="x">{text}</field></record>')
    return record["x"]


def test_records_are_a_sequence_of_documents_until_the_last() -> None:
    assert read(TWO_DOCUMENTS) == [
        {"n": 7, "<first>": 1},
        {"matrix": [1.0, 2.5, -3.0, 40.0], "<#owner>": 2},
    ]


def test_what_follows_the_last_record_is_not_read() -> None:
    assert read('<record/><record type="terminate"/><other>x</other><record/>') == [{}]


def test_each_record_is_given_as_soon_as_it_ends() -> None:
    lines = iter(TWO_DOCUMENTS.splitlines(keepends=True))
    assert next(read_xml(lines)) == {"n": 7, "<first>": 1}
    assert next(lines).startswith("<?xml")


def test_records_may_stand_in_one_element_and_need_no_last() -> None:
    text = '<data xmlns="snet-home.org"><record><tag label="t">1</tag></record>\n<record/></data>'
    assert read(text) == [{"<t>": 1}, {}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(int)5", 5),
        ("(unsigned long) -5 ", -5),
        ("(short)3", 3),
        ("(double)1.5", 1.5),
        ("(float)1e3", 1000.0),
        ("(long double)nan", pytest.approx(float("nan"), nan_ok=True)),
        ("(string)a &lt; b ", "a < b "),
        ("(string)", ""),
        ("(char),", ","),
        ("(char[5])a,&amp;,,,b,&lt;", "a&,b<"),
        ("(char[0])", ""),
        ("(int[3])1,2,3", [1, 2, 3]),
        ("(int[1])1", [1]),
        ("(int[0])", []),
        ("(double[2]) 1,\n 2", [1.0, 2.0]),
        ("\n:::FIBRE: int 1 16 :::\nkey.fibre\n", "\n:::FIBRE: int 1 16 :::\nkey.fibre\n"),
        ("(matrix)1", "(matrix)1"),
        ("5", "5"),
        ("", ""),
        ("<![CDATA[(string)<b>]]>", "<b>"),
    ],
)
def test_a_field_has_the_value_that_its_type_says(text: str, value: object) -> None:
    assert field(text) == value
    assert type(field(text)) in (int, float, str, list)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(int)x", "x: invalid literal for int"),
        ("(double)", "x: could not convert"),
        ("(int[2])1", "x: 2 values are announced, but there are 1"),
        ("(char[2])a;b", "x: 'a;b' is not 2 characters"),
        ("(char)ab", "x: 'ab' is not 1 characters"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(RecordError, match=f"line 1: {reason}"):
        field(text)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('<record>\n<tag label="t">x</tag></record>', 2, "<t>: invalid literal"),
        ('<record>\n<tag label="a b">1</tag>\n</record>', 3, "'<a b>' is no label"),
        ("<record>\n<tag>1</tag>\n</record>", 3, "'<>' is no label"),
        ("<record>\n\n<fields/></record>", 3, "<fields> is not expected here"),
        ("<records/>\n<record/>\n<tag/>", 3, "<tag> is not expected here"),
        ('<record>\n<field label="x"><b/></field></record>', 2, "<b> is not expected here"),
        ("<record>\n1</record>", 2, "'1' is not expected here"),
        ("\n<record type='sync'/>", 2, "a record of type 'sync' is unknown"),
        ("<record>\n<record/></record>", 2, "<record> is not expected here"),
        ("<record>\n", 2, "mismatched tag"),
        ("<record></records>", 1, "mismatched tag"),
        ("<record>&nothing;</record>", 1, "undefined entity"),
        (
            '<record><tag label="t">1</tag>\n<tag label="t">2</tag></record>',
            2,
            "the label <t> occurs twice",
        ),
    ],
)
def test_what_is_no_record_is_an_error_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(RecordError, match=f"line {line}: {reason}"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE record [<!ENTITY x "boom">]>\n<record>&x;</record>',
        '<record/>\n<!ENTITY x SYSTEM "file:///etc/passwd">',
    ],
)
def test_document_types_and_entities_are_refused(text: str) -> None:
    with pytest.raises(RecordError, match="document types and entities are refused"):
        read(text)


def test_a_document_type_over_two_lines_is_no_xml_here() -> None:
    with pytest.raises(RecordError, match="line 1: not well-formed"):
        read('<!\nDOCTYPE x [<!--"-->]>')


def test_a_declared_encoding_is_that_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "records.xml"
    text = (
        '<?xml version="1.0" encoding="ISO-8859-1" ?>\n<record><field label="x">ä</field></record>'
    )
    path.write_bytes(text.encode("latin-1"))
    assert list(read_xml(path)) == [{"x": "ä"}]
    path.write_bytes(b"<record>\n\xff")
    with pytest.raises(RecordError, match="line 2: 'utf-8' codec"):
        list(read_xml(path))
    path.write_bytes(b'<?xml version="1.0" encoding="no-such"?>')
    with pytest.raises(RecordError, match="line 1: unknown encoding"):
        list(read_xml(path))


numbers = st.integers() | st.floats(allow_nan=False)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.just("\r"))
values = numbers | texts.filter(lambda text: "\ufffe" not in text and "\uffff" not in text)
records = st.fixed_dictionaries(
    {},
    optional={
        "x": values,
        "größe": st.lists(st.integers()) | st.lists(st.floats(allow_nan=False)),
        "<n>": st.integers(),
        "<#b>": st.integers(),
    },
)


@given(st.lists(records, max_size=4))
def test_records_are_read_as_they_were_written(written: list[dict[str, Any]]) -> None:
    file = io.StringIO(newline="")
    assert write_xml(written, file) == len(written)
    assert list(read_xml(file.getvalue().splitlines(keepends=True))) == written


def test_the_ends_of_lines_are_kept() -> None:
    file = io.StringIO(newline="")
    write_xml([{"x": "a\r\nb\rc\n"}], file)
    assert read(file.getvalue()) == [{"x": "a\r\nb\rc\n"}]


def test_records_are_written_as_the_published_run_time_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "records.xml"
    record = {"x": 5, "m": [1, 2.5], "s": "<&", "<t>": 3, "<#b>": True, "big": 2**40}
    write_xml([record], path)
    assert path.read_text() == (
        '<?xml version="1.0" encoding="UTF-8" ?>\n'
        '<record xmlns="snet-home.org" type="data" mode="textual" interface="C4SNet">\n'
        '  <field label="x">(int)5</field>\n'
        '  <field label="m">(double[2])1,2.5</field>\n'
        '  <field label="s">(string)&lt;&amp;</field>\n'
        '  <tag label="t">3</tag>\n'
        '  <btag label="b">1</btag>\n'
        f'  <field label="big">(long){2**40}</field>\n'
        "</record>\n"
        '<record xmlns="snet-home.org" type="terminate" />\n'
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "x: a number, a string or a list of numbers is expected, not None"),
        ({"a": 1}, "x: a number, a string or a list"),
        (["a"], "x: a number, a string or a list"),
        ("\0", r"x: XML cannot have the character '\\x00'"),
        ("\ud800", r"x: XML cannot have the character '\\ud800'"),
    ],
)
def test_a_value_that_cannot_be_written_is_named(value: object, reason: str) -> None:
    with pytest.raises(RecordError, match=f"record 2: {reason}"):
        write_xml([{}, {"x": value}], io.StringIO())


MANY = 100_000  # a time that grew with the square of this would be hours


@pytest.mark.parametrize(
    "lines",
    [
        ["<?xml " * MANY],
        [b"<?xml " * MANY],
        [b"<?xml " + b"encoding " * MANY],
        ["<!-- ", *["> c\n"] * MANY],
        ['<record a="', *[">\n"] * MANY],
        ["<![CDATA[", *["c\n"] * MANY],
    ],
    ids=["declaration", "in bytes", "encoding", "comment", "attribute", "cdata"],
)
def test_xml_that_begins_and_does_not_end_is_an_error(lines: list[Any]) -> None:
    with pytest.raises(RecordError, match="line "):
        list(read_xml(lines))


def test_a_long_comment_delays_no_record_after_it() -> None:
    lines = ["<!--\n", *["c\n"] * MANY, "-->\n", '<record><tag label="n">1</tag></record>\n']
    endless = chain(lines, repeat("\n"))
    assert next(read_xml(endless)) == {"<n>": 1}


@pytest.mark.parametrize(
    "line",
    [
        "\ud800",
        '<record><field label="\ud800">x</field></record>',
        b'<?xml version="1.0" encoding="undefined"?>',
        b'<?xml version="1.0" encoding="idna"?>\xff',
        b'<?xml version="1.0" encoding="hex"?>',
        b"\xff",
        f'<record><tag label="n">{"9" * 10_000}</tag></record>',
        f'<record><field label="n">(int){"9" * 10_000}</field></record>',
        f'<record><field label="n">(char[{"9" * 10_000}])x</field></record>',
    ],
    ids=lambda line: repr(line)[:60],
)
def test_a_text_that_cannot_be_read_is_an_error_with_its_line(line: Any) -> None:
    with pytest.raises(RecordError, match="line 1: "):
        list(read_xml([line]))
