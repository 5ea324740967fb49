"""What somebody can do on the page, done in a real browser."""

import io
import json
import re
import threading
import time

import numpy as np
import pytest

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

SENTENCE = "the cat sleeps in the house."


@pytest.fixture
def run(finished):
    """Types a sentence, presses Enter, and waits for the result."""

    def run(page, text: str) -> None:
        page.fill("#text", text)
        page.press("#text", "Enter")
        finished(page)
        expect(page.locator("#results .card .text").first).to_have_text(text)

    return run


def tokens(page) -> list[str]:
    return page.locator(".canvas .token:not(.masked)").all_inner_texts()


def strip(page) -> list[str]:
    return page.locator("#strip path").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")


def give_vector(page) -> None:
    page.locator("label", has=page.locator("input[name=mode][value=vector]")).click()


def open_method(page) -> None:
    page.click("#method > summary")


def drop(page, name: str, content: bytes) -> None:
    page.evaluate(
        """([name, bytes]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], name));
            document.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
        }""",
        [name, list(content)],
    )


@pytest.fixture
def vector(encoder) -> list[float]:
    return encoder.encode([SENTENCE])[0].tolist()


def test_the_page_is_never_empty(page):
    expect(page.locator("#text")).not_to_have_value("")
    expect(page.locator("#verdict")).to_contain_text(re.compile(r"(\d+|None) of \d+ content words? came back"))
    assert page.locator("#words li").count() == 12
    expect(page.locator("#baseline")).to_contain_text("Without the vector, the same model gets")
    expect(page.locator("#facts")).to_contain_text("Dimensions16")
    for measure in ("Content words", "Token accuracy", "Token F1", "Cosine", "Passes", "Time"):
        expect(page.locator(".measures")).to_contain_text(measure)
    assert page.locator("#histogram rect").count() > 4


def test_a_typed_sentence_resolves_from_masks_pass_by_pass(new_page, address, finished):
    page = new_page(address, reduced_motion="no-preference")
    page.goto(address)
    page.fill("#text", SENTENCE)
    page.press("#text", "Enter")
    page.wait_for_selector(".word:has(.masked) ~ .word.changed, .word.changed ~ .word:has(.masked)")
    expect(page.locator("#results .card").last).to_contain_text("▒")
    expect(page.locator("#verdict")).to_have_class(re.compile("stale"))
    finished(page)
    assert page.locator(".token.masked").count() == 0
    expect(page.locator("#results .card").first).to_contain_text(SENTENCE)
    expect(page.locator("#status")).to_contain_text("Done.")


def test_typing_redraws_the_vector_before_anything_is_run(page):
    before = strip(page)
    page.fill("#text", "a dog plays in the snow.")
    page.wait_for_function(
        "before => document.querySelector('#strip path').getAttribute('d') !== before", arg=before[0]
    )
    expect(page.locator("#verdict")).to_have_class(re.compile("stale"))


def test_dice_give_another_sentence_of_their_kind(page, address, finished):
    examples = page.request.get(f"{address}/api/examples").json()["examples"]
    for difficulty in ("easy", "hard"):
        before = page.input_value("#text")
        page.click(f"#roll-{difficulty}")
        finished(page)
        rolled = page.input_value("#text")
        assert rolled != before
        assert rolled in [example["text"] for example in examples if example["difficulty"] == difficulty]


def test_passes_can_be_scrubbed_back_and_forth(page):
    last = int(page.get_attribute("#scrub", "max"))
    page.locator("#scrub").fill("0")
    assert page.locator(".token.masked").count() == page.locator(".token").count()
    shown = []
    for index in range(1, last + 1):
        page.locator("#scrub").fill(str(index))
        shown.append(len(tokens(page)))
    assert shown == sorted(shown)
    assert page.locator(".token.masked").count() == 0
    expect(page.locator("#frame-number")).to_have_text(f"{last} / {last}")


def test_playing_and_pausing(page):
    page.select_option("#speed", "4")
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")
    held = page.input_value("#scrub")
    page.wait_for_timeout(300)
    assert page.input_value("#scrub") == held
    page.click("#play")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Play")
    assert page.input_value("#scrub") == page.get_attribute("#scrub", "max")


def test_arrow_keys_scrub_and_space_plays(page):
    page.locator("#lanes").focus()
    last = int(page.input_value("#scrub"))
    page.keyboard.press("ArrowLeft")
    assert page.input_value("#scrub") == str(last - 1)
    page.keyboard.press("Home")
    assert page.input_value("#scrub") == "0"
    page.keyboard.press("ArrowRight")
    assert page.input_value("#scrub") == "1"
    page.keyboard.press(" ")
    expect(page.locator("#play")).to_have_attribute("aria-label", "Pause")


def test_home_and_space_scroll_the_page_unless_the_passes_have_the_focus(page):
    page.click("h1")
    places = []
    for key in ("End", "Home", " "):
        page.keyboard.press(key)
        page.wait_for_timeout(800)  # scrolling takes a moment
        places.append(page.evaluate("window.scrollY"))
    assert places[0] > 100
    assert places[1] == 0
    assert places[2] > 100


def test_another_strategy_is_run_at_once(page, finished):
    open_method(page)
    with page.expect_request("**/api/invert/stream") as request:
        page.select_option("[name=strategy]", "sequential")
    assert request.value.post_data_json["strategy"] == "sequential"
    finished(page)
    expect(page.locator("#method-choice")).to_contain_text("sequential")
    assert int(page.get_attribute("#scrub", "max")) == page.locator(".token").count()


def test_the_number_of_passes_can_be_chosen(page, finished):
    open_method(page)
    page.locator("[name=steps]").fill("3")
    finished(page)
    expect(page.locator("#frame-number")).to_have_text("3 / 3")


def test_an_attacker_with_the_encoder_searches(page, finished):
    open_method(page)
    page.locator("[name=rounds]").evaluate("field => field.value = 3")
    page.get_by_text("the vector and the encoder").click()
    finished(page)
    expect(page.locator(".measures")).to_contain_text("Guesses")
    expect(page.locator(".lane .note")).to_contain_text("guesses embedded")
    expect(page.locator("#rounds-control")).to_be_visible()
    expect(page.locator("#strategy-control")).to_be_hidden()


def test_two_strategies_are_compared_side_by_side(page, finished):
    open_method(page)
    page.select_option("[name=compare]", "sequential")
    finished(page)
    assert page.locator(".lane h3").all_inner_texts() == ["confidence", "sequential"]
    assert page.locator("#results h3").all_inner_texts() == ["Original", "confidence", "sequential"]
    assert page.locator("#details .measures").count() == 2
    left, right = (page.locator(".lane").nth(place).bounding_box() for place in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] < right["x"]


def test_a_defence_changes_the_vector_and_can_be_compared_with_none(page, finished):
    plain = strip(page)
    page.click("#defend > summary")
    page.get_by_text("Gaussian noise").click()
    finished(page)
    noisy = strip(page)
    assert plain[0] not in noisy
    assert page.locator("#strip .before").count() == 1
    page.locator("[name=strength]").fill("1")
    page.locator("[name=strength]").dispatch_event("change")
    expect(page.locator("#curve-key li").first).to_have_text(
        "32 % of the ten nearest texts are still found by a search"
    )
    expect(page.locator("#curve-key")).to_contain_text("an attacker who knows the defence and adapts")
    assert page.locator("#curve path").count() == 5
    page.wait_for_function(
        "before => document.querySelector('#strip .above').getAttribute('d') !== before", arg=noisy[1]
    )
    open_method(page)
    page.select_option("[name=compare]", "undefended")
    finished(page)
    assert page.locator(".lane h3").all_inner_texts() == ["defended", "undefended"]
    expect(page.locator("#defence-choice")).to_contain_text("noise", ignore_case=True)


def test_a_pasted_vector_gives_the_text_that_its_sentence_gives(page, vector, run, finished):
    run(page, SENTENCE)
    from_sentence = tokens(page)
    give_vector(page)
    page.fill("#vector", json.dumps(vector))
    page.press("#vector", "Enter")
    expect(page.locator("#results h3")).to_have_text(["Recovered"])
    finished(page)
    assert tokens(page) == from_sentence
    expect(page.locator("#verdict")).to_contain_text("16 numbers")


def test_a_vector_that_is_not_the_encoders_comes_with_a_warning(page, vector, finished):
    give_vector(page)
    page.fill("#vector", json.dumps(vector))
    page.press("#vector", "Enter")
    expect(page.locator("#results h3")).to_have_text(["Recovered"])
    expect(page.locator("#warnings li")).to_have_count(0)
    page.fill("#vector", json.dumps([3 * number for number in vector]))
    page.press("#vector", "Enter")
    expect(page.locator("#warnings li")).to_contain_text("does not look like those of fake")
    expect(page.locator("#reliability")).to_contain_text("Noise")
    expect(page.locator("#verdict")).to_have_text("Nothing that can be read is in these 16 numbers.")


def test_a_dropped_npy_file_is_read_and_its_rows_can_be_chosen(page, vector, finished):
    file = io.BytesIO()
    np.save(file, np.array([[1.0] * 16, vector], dtype=np.float32))
    drop(page, "vectors.npy", file.getvalue())
    expect(page.locator("#results h3")).to_have_text(["Recovered"])
    expect(page.locator("#vector-hint")).to_contain_text("vectors.npy")
    page.fill("#row", "2")
    page.press("#row", "Tab")
    page.wait_for_function(
        "first => document.querySelector('#vector').value.startsWith(first)", arg=f"[{vector[0]:.2f}"[:4]
    )
    finished(page)
    np.testing.assert_allclose(json.loads(page.input_value("#vector")), vector, atol=1e-3)


def test_a_dropped_json_file_is_read(page, vector):
    drop(page, "vector.json", json.dumps(vector).encode())
    expect(page.locator("#results h3")).to_have_text(["Recovered"])


def test_a_bad_vector_is_explained(page):
    give_vector(page)
    for given, message in {
        "": "no vector yet",
        "0.1, zebra, 0.3": "Number 2 of the vector is “zebra”",
        "[1, 2, 3]": "16",
        f"[{'0, ' * 15} 0]": "zero",
        "1 2 Infinity": "Number 3 of the vector is not finite",
    }.items():
        page.fill("#vector", given)
        page.click("#run")
        expect(page.locator("#alert")).to_contain_text(message, ignore_case=True)
        expect(page.locator("#alert")).to_be_visible()
        expect(page.locator("#alert-remedy")).not_to_be_empty()


def test_a_file_that_is_no_npy_is_explained(page):
    drop(page, "vectors.npy", b"PK\x03\x04 this is a zip archive")
    expect(page.locator("#alert")).to_contain_text("not a .npy file")


@pytest.fixture
def slowed(encoder, monkeypatch):
    """Slows the encoder down, or a search might end before anybody can do anything about it."""
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda *given, **options: time.sleep(0.3) or encode(*given, **options))


def search_for_long(page) -> None:
    page.evaluate("document.querySelector('[name=rounds]').value = 50")
    page.get_by_text("the vector and the encoder").click()
    expect(page.locator("#run-label")).to_have_text("Cancel")


@pytest.mark.parametrize("how", ["button", "Escape"])
def test_a_search_is_stopped_midway_and_its_best_text_is_kept(page, slowed, finished, how):
    search_for_long(page)
    expect(page.locator("#progress-note")).to_contain_text(
        re.compile(r"Round [2-9] of 50: cosine .*, at most \d+ s left")
    )
    assert page.locator("#climb .climb").get_attribute("d").count("L") >= 2
    if how == "button":
        page.click("#keep")
    else:
        page.keyboard.press("Escape")
    finished(page)
    expect(page.locator("#results h3")).to_have_text(["Original", "Recovered"])
    expect(page.locator("#results .card").last.locator(".text")).not_to_be_empty()
    expect(page.locator(".measures")).to_contain_text("Guesses")
    expect(page.locator("#progress")).to_be_hidden()
    assert int(page.get_attribute("#scrub", "max")) < 50
    page.wait_for_function("() => fetch('/api/queue').then(answer => answer.json()).then(queue => queue.running === 0)")


def test_cancelling_frees_the_server(page, slowed):
    search_for_long(page)
    page.wait_for_selector(".token")
    page.click("#run")
    expect(page.locator("#status")).to_have_text("Cancelled.")
    expect(page.locator("#run-label")).to_have_text("Read it back")
    page.wait_for_function("() => fetch('/api/queue').then(answer => answer.json()).then(queue => queue.running === 0)")


def test_the_position_in_the_queue_is_shown(page, new_page, address, encoder, monkeypatch, finished):
    release = threading.Event()
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda *given, **options: release.wait(20) and encode(*given, **options))
    page.click("#run")
    page.wait_for_function("() => fetch('/api/queue').then((answer) => answer.json()).then((queue) => queue.running)")
    other = new_page(address)
    other.goto(address)
    expect(other.locator("#status")).to_contain_text("Waiting: number 1 in the queue")
    release.set()
    finished(page)
    finished(other)


def test_a_full_queue_is_explained_and_can_be_tried_again(page, finished):
    full = {"message": "256 vectors are waiting.", "remedy": "Try again in 5 seconds."}
    page.route("**/api/invert/stream", lambda route: route.fulfill(status=503, json=full))
    page.click("#run")
    expect(page.locator("#alert")).to_contain_text("256 vectors are waiting. Try again in 5 seconds.")
    page.unroute("**/api/invert/stream")
    page.click("#alert-retry")
    finished(page)
    expect(page.locator("#alert")).to_be_hidden()


def test_without_the_encoder_the_page_takes_vectors_only(new_page, serve, vector):
    address = serve(encoder=None)
    page = new_page(address)
    page.goto(address)
    expect(page.locator("#status")).to_have_text("This server has no encoder: give it a vector.")
    expect(page.locator("input[name=mode][value=text]")).to_be_disabled()
    expect(page.locator("input[name=attacker][value=guided]")).to_be_disabled()
    page.fill("#vector", json.dumps(vector))
    page.press("#vector", "Enter")
    expect(page.locator("#verdict")).to_have_text("This is what the 16 numbers say, as far as this model can tell.")
    expect(page.locator("#reliability")).to_contain_text("Unknown")
    expect(page.locator("#nudge")).to_be_hidden()


def test_a_blind_result_leads_on_to_the_search(page, finished):
    page.click("#nudge-guided")
    finished(page)
    expect(page.locator("input[name=attacker][value=guided]")).to_be_checked()
    expect(page.locator(".measures")).to_contain_text("Guesses")
    expect(page.locator("#nudge")).to_be_hidden()


def test_a_first_load_without_the_server_goes_on_once_it_is_there(new_page, address, finished):
    page = new_page(address)
    page.route("**/api/**", lambda route: route.abort())
    page.goto(address)
    expect(page.locator("#alert")).to_contain_text("The server does not answer.")
    page.unroute("**/api/**")
    finished(page)
    expect(page.locator("#alert")).to_be_hidden()


def test_the_page_goes_on_once_the_server_is_back(page, finished):
    page.context.set_offline(True)
    page.click("#run")
    expect(page.locator("#alert")).to_contain_text("offline")
    page.context.set_offline(False)
    expect(page.locator("#alert")).to_be_hidden()
    finished(page)


def test_a_key_is_asked_for_and_kept_for_the_tab(new_page, serve, finished):
    address = serve(api_key="open sesame")
    page = new_page(address)
    page.goto(address)
    expect(page.locator("#key-dialog")).to_be_visible()
    page.fill("#key", "wrong")
    page.press("#key", "Enter")
    expect(page.locator("#key-note")).to_contain_text("not accepted")
    page.fill("#key", "open sesame")
    page.click("#key-use")
    finished(page)
    page.reload()
    finished(page)
    expect(page.locator("#key-dialog")).to_be_hidden()


def test_who_declines_to_give_a_key_can_think_again(new_page, serve, finished):
    address = serve(api_key="open sesame")
    page = new_page(address)
    page.goto(address)
    page.get_by_text("Not now").click()
    expect(page.locator("#alert")).to_be_visible()
    page.click("#alert-retry")
    page.fill("#key", "open sesame")
    page.click("#key-use")
    finished(page)
    expect(page.locator("#alert")).to_be_hidden()


def test_a_shared_link_has_the_settings_but_no_text_unless_asked(page, new_page, address, finished, run):
    run(page, SENTENCE)
    open_method(page)
    page.select_option("[name=strategy]", "euler")
    finished(page)
    page.click("#share-open")
    link = page.input_value("#share-link")
    assert "strategy=euler" in link
    assert "cat" not in link
    assert "cat" not in page.url
    page.check("#share-text")
    page.click("#share-copy")
    link = page.evaluate("navigator.clipboard.readText()")
    other = new_page(address)
    other.goto(link)
    finished(other)
    assert other.input_value("#text") == SENTENCE
    assert other.input_value("[name=strategy]") == "euler"


def test_a_link_with_nonsense_in_it_still_opens(new_page, address, finished):
    page = new_page(address)
    page.goto(f"{address}/#strategy=magic&steps=none&example=9999&defence=wall&mode=%00&text=&file=abc&run=1")
    finished(page)
    assert page.input_value("[name=steps]") == "8"
    assert page.input_value("[name=strategy]") == "confidence"


def test_dark_and_light(new_page, address, finished):
    page = new_page(address, color_scheme="dark")
    page.goto(address)
    finished(page)

    def brightness() -> int:
        return page.evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")

    assert brightness() < 60
    page.click("#theme")
    expect(page.locator("#theme")).to_have_attribute("aria-label", "Colours: light")
    assert brightness() > 200
    page.reload()
    assert brightness() > 200


def test_a_phone_needs_no_sideways_scrolling(new_page, address, finished):
    page = new_page(address, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.goto(f"{address}/#compare=sequential&defence=noise")
    finished(page)
    open_method(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    strategy, compare = (page.locator(f"[name={name}]").bounding_box() for name in ("strategy", "compare"))
    assert compare["y"] > strategy["y"] + strategy["height"] - 1, "one below the other"
    assert strategy["width"] > 120, "its choice can be read"
    first, second = (page.locator(".lane").nth(place).bounding_box() for place in (0, 1))
    assert second["y"] > first["y"] + first["height"] - 1
    page.click("#share-open")
    box = page.locator("#share").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360


def test_reduced_motion_goes_straight_to_the_end(page, run):
    page.evaluate(
        """() => {
            window.seen = [];
            new MutationObserver(() => window.seen.push(document.querySelector("#play").ariaLabel))
                .observe(document.querySelector("#verdict"), {childList: true});
        }"""
    )
    run(page, SENTENCE)
    assert page.evaluate("window.seen") == ["Play"]
    assert page.evaluate("getComputedStyle(document.querySelector('.token')).transitionDuration") == "0s"
    page.locator("#scrub").fill("0")
    assert page.locator(".token.masked").count() > 0


def test_a_sentence_without_words_is_not_counted(page, run):
    run(page, "?!")
    expect(page.locator("#verdict")).to_have_text(re.compile("There are no words in it to compare|whole sentence"))


def test_a_word_of_several_pieces_stays_in_one_line_and_in_one_frame(page):
    tokens = [
        {"text": part, "joined": bool(place), "masked": False, "changed": not place, "confidence": 0.5}
        for place, part in enumerate(["anti", "dis", "establish"])
    ]
    shown = page.evaluate(
        """async (tokens) => {
            const folder = document.querySelector("link[rel=stylesheet]").href.replace(/style.css$/, "");
            const { showTokens } = await import(folder + "canvas.js");
            const list = document.querySelector(".canvas");
            showTokens(list, tokens);
            return [list.children.length, list.querySelectorAll(".word.changed").length,
                    new Set([...list.querySelectorAll(".token")].map((cell) => cell.offsetTop)).size];
        }""",
        tokens,
    )
    assert shown == [1, 1, 1]


def test_dropped_text_goes_into_the_field(page):
    blocked = page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.setData("text/plain", "a sentence");
            const events = ["dragover", "drop"].map((name) =>
                new DragEvent(name, {dataTransfer: transfer, bubbles: true, cancelable: true}));
            return events.map((event) => !document.querySelector("#text").dispatchEvent(event));
        }"""
    )
    assert blocked == [False, False], "the browser does what it does everywhere"


def test_text_is_never_taken_for_markup(page, run):
    run(page, "<b>a</b> & <i>")
    assert page.locator("main b, main i:not(.swatch, .line)").count() == 0


def test_everything_has_a_name_for_screen_readers(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea")].filter((node) =>
            node.checkVisibility() && !node.ariaLabel && !node.textContent.trim() && !node.labels?.length
        ).map((node) => node.outerHTML)"""
    )
    assert unnamed == []
    expect(page.locator("#status")).to_have_attribute("role", "status")
