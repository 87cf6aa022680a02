"""The playground's files over HTTP: types, what a browser is allowed to load, and that nothing comes from elsewhere."""

import re

import httpx2
import pytest

from mezzotint.server.pages import POLICY, read_assets

ASSETS = read_assets()


def test_the_page_is_served_at_the_root_with_a_strict_policy(http: httpx2.Client) -> None:
    response = http.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"] == POLICY
    assert "default-src 'self'" in POLICY
    assert "unsafe" not in POLICY
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", sorted(set(ASSETS) - {"index.html"}))
def test_every_asset_has_its_type_and_policy(http: httpx2.Client, name: str) -> None:
    response = http.get(f"/assets/{name}")
    kinds = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
    assert response.status_code == 200
    assert response.headers["content-type"] == kinds[name.rpartition(".")[2]]
    assert response.headers["content-security-policy"] == POLICY
    assert response.content == ASSETS[name].content


def test_what_has_not_changed_is_not_sent_again(http: httpx2.Client) -> None:
    first = http.get("/assets/app.js")
    assert first.headers["cache-control"] == "no-cache"
    again = http.get("/assets/app.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert http.get("/assets/app.js", headers={"if-none-match": '"another"'}).status_code == 200


@pytest.mark.parametrize("name", ["nothing.js", "index.html", "%2e%2e%2fserver%2fpages.py", "..%2f..%2fpyproject.toml"])
def test_an_unknown_asset_is_404(http: httpx2.Client, name: str) -> None:
    response = http.get(f"/assets/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found_error"


def test_no_file_loads_anything_from_elsewhere() -> None:
    for name, asset in ASSETS.items():
        text = asset.content.decode().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.findall(r"https?:\S*|(?<![:\w])//\w[\w-]*\.\w\S*|@import|\burl\(", text), name


def test_every_file_that_is_asked_for_is_there_and_every_one_there_is_asked_for() -> None:
    asked = {"index.html"}
    for asset in ASSETS.values():
        asked |= set(re.findall(r"/assets/([\w.]+)", asset.content.decode()))
    assert asked == set(ASSETS)


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    page = ASSETS["index.html"].content.decode()
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) == [""]
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


def test_text_of_the_model_is_never_read_as_markup() -> None:
    for name, asset in ASSETS.items():
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", asset.content.decode())
        assert not found, name


def test_no_file_of_the_page_is_longer_than_a_few_screens() -> None:
    for name, asset in ASSETS.items():
        assert len(asset.content.splitlines()) <= 300, name
