"""Scripts and styles are compressed once per process, and a client with a current copy is sent
nothing."""

import gzip
from pathlib import Path

from django.contrib.staticfiles import finders
from django.test import Client

from dashboard.ui.http import static_files

ASK = {"Accept-Encoding": "gzip, br"}
PLOTLY = "/static/vendor/plotly.min.js"


def test_the_largest_file_is_compressed_for_the_first_request_only(
    client: Client,
) -> None:
    static_files._load_compressed.cache_clear()
    first, second = (client.get(PLOTLY, headers=ASK) for _ in range(2))
    assert (
        static_files._load_compressed.cache_info().misses,
        static_files._load_compressed.cache_info().hits,
    ) == (1, 1)
    assert (
        first.content == second.content
        and first["Content-Encoding"] == "gzip"
        and int(first["Content-Length"]) == len(first.content)
    )
    assert (
        gzip.decompress(first.content)
        == Path(str(finders.find("vendor/plotly.min.js"))).read_bytes()
    )
    assert (
        first["Content-Type"].startswith("text/javascript") and "Accept-Encoding" in first["Vary"]
    )


def test_a_current_copy_is_not_sent_again_if_a_proxy_changed_the_etag(
    client: Client,
) -> None:
    tag = client.get("/static/ui/app.css", headers=ASK)["ETag"]
    for said in (tag, f"W/{tag}", f'"another", {tag}'):
        again = client.get("/static/ui/app.css", headers=ASK | {"If-None-Match": said})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
    assert (
        client.get("/static/ui/app.css", headers=ASK | {"If-None-Match": '"another"'}).status_code
        == 200
    )


def test_a_client_without_gzip_gets_the_file_uncompressed(client: Client) -> None:
    plain = client.get("/static/ui/app.css", headers={"Accept-Encoding": "br"})
    assert "Content-Encoding" not in plain
    assert b"".join(plain) == Path(str(finders.find("ui/app.css"))).read_bytes()  # type: ignore[arg-type]


def test_a_file_answers_get_only(client: Client) -> None:
    assert client.post("/static/ui/app.css", headers=ASK).status_code == 405
    assert client.get("/static/ui/none.css", headers=ASK).status_code == 404
