"""Locks over TLS: each argument arrives. How TLS can be refused, the scenarios in Rust prove."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import typing

import pytest
from ground import Ground
from guests.test_pickling import refuses
from scenes import raises

import zklock

PASS_PHRASE = "s3cret of the key"


class Files(typing.NamedTuple):
    """The TLS addresses of the servers and their PEM files, as reported by the ground."""

    hosts: str
    authority: str
    certificate: str
    key: str

    @property
    def tls(self) -> zklock.Tls:
        return zklock.Tls(self.authority, self.certificate, self.key)


@pytest.fixture(scope="module")
def secure() -> typing.Iterator[Ground]:
    """A server that requires a certificate."""
    with contextlib.closing(Ground()) as ground:
        ground("start standalone tls tick=500")
        yield ground


@pytest.fixture(scope="module")
def files(secure: Ground) -> Files:
    # What follows is of an authority that the servers do not know.
    return Files(*secure("tls").split()[:4])


def test_a_file_that_will_not_do_is_named_at_once(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "missing.pem"
    for make in (lambda: zklock.Tls(missing), lambda: zklock.Tls(str(missing))):
        raised = raises(zklock.InvalidInput, make).says(str(missing), "No such file")
        # A file was given, not the text of one.
        assert "give the text" not in str(raised.error)
    raises(zklock.InvalidInput, lambda: zklock.Tls("a\0b")).says("NUL")


def test_it_is_shown_by_its_files_and_not_copied(files: Files) -> None:
    assert repr(zklock.Tls(files.authority)) == f"<zklock.Tls trusting {files.authority}>"
    refuses(files.tls, "send the paths of its files")
    refuses(zklock.PassPhrase("secret"), "send the path of its file")


def encrypted(files: Files, tmp_path: pathlib.Path) -> pathlib.Path:
    """The client's key with the pass phrase."""
    # A name may be bytes that are not text, as the system allows.
    key = tmp_path / "client \udcff.key"
    command = ["openssl", "pkey", "-aes256", "-in", files.key, "-out", str(key), "-passout", f"pass:{PASS_PHRASE}"]
    subprocess.run(command, check=True)
    return key


def test_a_key_may_have_a_pass_phrase(files: Files, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, file = encrypted(files, tmp_path), tmp_path / "pass"
    file.write_text(PASS_PHRASE + "\n")
    monkeypatch.setenv("ZKLOCK_TEST_PASS", PASS_PHRASE)
    phrases = zklock.PassPhrase(PASS_PHRASE), zklock.PassPhrase.from_file(file), zklock.PassPhrase.from_env("ZKLOCK_TEST_PASS")
    made = [
        zklock.Tls(files.authority, files.certificate, key, pass_phrase=phrase) for phrase in (PASS_PHRASE, *phrases)
    ]
    assert "s3cret" not in repr(made) + repr(phrases)
    with zklock.Client(files.hosts, tls=made[-1]) as zk:
        assert zk.session_id
    with pytest.raises(TypeError, match="pass_phrase") as of_type:
        zklock.Tls(files.authority, files.certificate, key, pass_phrase=b"s3cret")  # type: ignore[call-overload]
    assert "s3cret" not in str(of_type.value)


def test_the_authorities_of_the_system(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", files.authority)
    with zklock.Client(files.hosts, tls=zklock.Tls.system(files.certificate, files.key)) as zk:
        assert zk.session_id
