"""Does every file get a page, whatever its name and its bytes?"""

from urllib.parse import quote

import pytest

NAMES = [
    "with space.txt",
    "ünïcödé.txt",
    "hash#.txt",
    "percent%41.txt",
    "question?.txt",
    "line\nbreak.txt",
    "-leading",
    "--help",
    "a&b<c>'\".txt",
    "back\\slash",
    "plus+semi;colon:at@star*.txt",
    "[glob]*?",
    ":(top)magic",
    "emoji 🦊/nested dir/f",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_can_be_followed_from_the_list_to_the_bytes(worktree, signed_in, name):
    worktree.commit({name: f"content of {name!r}"})
    worktree.push()
    client = signed_in("carol")
    address = "main"
    *folders, _ = name.split("/")
    for folder in folders:
        link = f"/alice/demo/tree/{address}/{quote(folder)}"
        assert f'href="{link}"' in client.get(f"/alice/demo/tree/{address}").content.decode()
        address += f"/{quote(folder)}"
    page = client.get(f"/alice/demo/tree/{address}").content.decode()
    link = next(
        part.split('"')[0] for part in page.split('href="')[1:] if part.startswith(f"/alice/demo/blob/{address}/")
    )
    link = link.replace("&#x27;", "'").replace("&amp;", "&")
    assert client.get(link).status_code == 200
    raw = client.get(link.replace("/blob/", "/raw/"))
    assert raw.getvalue().decode() == f"content of {name!r}"
    assert client.get(link.replace("/blob/", "/commits/")).status_code == 200


def test_a_name_that_is_not_utf8_is_listed_and_harms_nothing(worktree, signed_in):
    worktree.commit({b"caf\xe9.txt": "x", "other.txt": "y"})
    worktree.push()
    page = signed_in("carol").get("/alice/demo/").content.decode()
    assert "caf\N{REPLACEMENT CHARACTER}.txt" in page
    assert "its name is not UTF-8" in page
    sha = worktree.git("rev-parse", "HEAD")
    assert signed_in("carol").get(f"/alice/demo/commit/{sha}/").status_code == 200


def test_lines_have_numbers_and_anchors_and_are_escaped(worktree, signed_in):
    worktree.commit({"a.html": "<b>one</b>\r\ntwo\n"})
    worktree.push()
    page = signed_in("carol").get("/alice/demo/blob/main/a.html").content.decode()
    assert '<li id="L1"><a href="#L1" aria-label="Line 1">1</a><code>&lt;b&gt;one&lt;/b&gt;</code></li>' in page
    assert 'id="L2"' in page
    assert 'id="L3"' not in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "This file is empty"),
        (b"a\0b", "This file is binary"),
        (b"x" * (1024 * 1024 + 1), "too large to be shown"),
        (b"caf\xe9\n", "This file is not UTF-8"),
        (b"line\n" * 30_000, "10000 more lines"),
    ],
)
def test_it_says_why_a_file_is_not_shown_whole(worktree, signed_in, content, said):
    worktree.commit({"file": content})
    worktree.push()
    assert said in signed_in("carol").get("/alice/demo/blob/main/file").content.decode()
    assert signed_in("carol").get("/alice/demo/raw/main/file").getvalue() == content


def test_markdown_is_rendered_and_its_source_one_click_away(worktree, signed_in):
    worktree.commit({"docs/a.md": "# Title\n[b](b.md)"})
    worktree.push()
    client = signed_in("carol")
    page = client.get("/alice/demo/blob/main/docs/a.md").content.decode()
    assert "<h1>Title</h1>" in page
    assert 'href="/alice/demo/blob/main/docs/b.md"' in page
    assert "# Title" in client.get("/alice/demo/blob/main/docs/a.md?plain").content.decode()


@pytest.mark.parametrize(
    ("name", "content", "content_type", "kind"),
    [
        ("a.html", b"<script>alert(1)</script>", "text/plain; charset=utf-8", "inline"),
        ("a.bin", b"\0\1", "application/octet-stream", "attachment"),
        ("a.svg", b"<svg onload='alert(1)'/>", "image/svg+xml", "inline"),
        ("a.png", b"\x89PNG\0", "image/png", "inline"),
    ],
)
def test_raw_bytes_cannot_act_in_the_name_of_the_site(worktree, signed_in, name, content, content_type, kind):
    worktree.commit({name: content})
    worktree.push()
    answer = signed_in("carol").get(f"/alice/demo/raw/main/{name}")
    assert answer["Content-Type"] == content_type
    assert answer["Content-Disposition"].startswith(kind)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert "script-src" not in answer["Content-Security-Policy"]
    assert answer.getvalue() == content
    download = signed_in("carol").get(f"/alice/demo/raw/main/{name}?download")
    assert download["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "address",
    [
        "/alice/demo/tree/nothing",
        "/alice/demo/tree/main/nothing",
        "/alice/demo/blob/main/nothing",
        "/alice/demo/blob/main/../main/a",
        "/alice/demo/raw/main",
        "/alice/demo/raw/main/d",
        "/alice/demo/commits/--all",
        "/alice/demo/tree/main%7E1",
        "/alice/demo/tree/main@%7B1%7D",
        "/alice/demo/commit/--help/",
        "/alice/demo/commit/" + "0" * 40 + "/",
        "/alice/demo/commit/HEAD%5E/",
    ],
)
def test_what_is_not_there_is_not_found(worktree, signed_in, address):
    worktree.commit({"d/a": "a"})
    worktree.commit({"d/b": "b"})
    worktree.push()
    assert signed_in("carol").get(address).status_code == 404


def test_folder_and_file_addresses_lead_to_each_other(worktree, signed_in):
    worktree.commit({"d/a": "a"})
    worktree.push()
    client = signed_in("carol")
    assert client.get("/alice/demo/blob/main/d")["Location"] == "/alice/demo/tree/main/d"
    assert client.get("/alice/demo/tree/main/d/a")["Location"] == "/alice/demo/blob/main/d/a"
    assert client.get("/alice/demo/blob/main")["Location"] == "/alice/demo/tree/main"


def test_a_branch_with_slashes_and_a_tag_are_found(worktree, signed_in):
    worktree.commit({"d/a": "a"})
    worktree.push("HEAD:refs/heads/feature/x", "HEAD:refs/heads/main", "HEAD:refs/tags/v1.0")
    client = signed_in("carol")
    for ref in ("feature/x", "v1.0", worktree.git("rev-parse", "HEAD"), worktree.git("rev-parse", "--short", "HEAD")):
        assert client.get(f"/alice/demo/tree/{ref}/d").status_code == 200
        page = client.get(f"/alice/demo/blob/{ref}/d/a").content.decode()
        assert '<a class="ellipsis" href="/alice/demo/blob/feature/x/d/a"' in page
        assert '<a class="ellipsis" href="/alice/demo/blob/v1.0/d/a"' in page


def test_a_link_is_shown_and_not_followed(worktree, signed_in):
    (worktree.folder / "link").symlink_to("/etc/passwd")
    worktree.commit({})
    worktree.push()
    page = signed_in("carol").get("/alice/demo/blob/main/link").content.decode()
    assert "symbolic link" in page
    assert "root:" not in page
