"""Templates: what a slot is, and what is wrong with those that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unembed.errors import ConfigError
from unembed.filling import Template


def test_a_template_is_known_text_around_slots():
    template = Template.parse("Dear {name}, your PIN is {pin:digits:4}.")
    assert template.names == ["name", "pin"]
    assert [slot.kind for slot in template.slots] == [None, "digits:4"]
    assert template.fill(["Ada", "0042"]) == "Dear Ada, your PIN is 0042."


def test_double_braces_are_text():
    assert Template.parse("{{{key}}} is {{}}").fill(["x"]) == "{x} is {}"


def test_the_spans_are_where_the_values_stand():
    template = Template.parse("{a} and {b}!")
    text = template.fill(["one", "three"])
    assert [text[start:end] for start, end in template.spans(["one", "three"])] == ["one", "three"]


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=4), st.text(st.characters(codec="utf-8")))
def test_any_text_can_be_known_text_if_its_braces_are_doubled(texts, value):
    written = "".join(
        part.replace("{", "{{").replace("}", "}}") + (f"{{s{place}}}" if place < len(texts) - 1 else "")
        for place, part in enumerate(texts)
    )
    filled = Template.parse(written).fill([value] * (len(texts) - 1))
    assert filled == value.join(texts)


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("Dear Ada", "has no slot", '"Dear {name}'),
        ("Dear {name", "brace without its partner", "{{ and }}"),
        ("Dear name}", "brace without its partner", "{{ and }}"),
        ("Dear {}", "is not a slot", "{name}"),
        ("Dear {0}", "is not a slot", "{name}"),
        ("Dear {first name}", "is not a slot", "{name}"),
        ("Dear {name!r}", "is not a slot", "{name}"),
        ("{name} and {name}", "'name' stands in the template twice", "{name2}"),
    ],
)
def test_mistakes_are_explained(text, problem, remedy):
    with pytest.raises(ConfigError) as raised:
        Template.parse(text)
    assert problem in raised.value.problem
    assert remedy in raised.value.remedy
