"""Logging in, the access lists of created nodes, and TLS: each argument arrives. How TLS can be refused, the scenarios in Rust prove."""

from __future__ import annotations

import functools
import logging
import pathlib
import subprocess
import typing

import pytest
from ground import Ground, started
from guests.test_pickling import refuses
from scenes import SOON, raises

import zklock

SECRET = "s3cret-of-python"
ANN = zklock.Digest("ann", SECRET)
ANN_AND_BOB = ["digest:ann:Xasr5xg+ZPspxeKunCrkZ2aECqE=:cdrwa", "digest:bob:iV+cRT7nxVH6RH0x4cDwS4Zl+cE=:crw"]


def test_no_password_is_said_by_anything(
    ground: Ground, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    path, hosts, file = "/access-secrets", ground("servers"), tmp_path / "zookeeper"
    file.write_text(f"ann:{SECRET}\n")
    from_file = zklock.Digest.from_file(file)
    client = zklock.Client(hosts, auth=[ANN, from_file], access="creator-all")
    said = [repr(ANN), str(from_file), repr(client)]
    assert "ann" in said[0] and "hidden" in said[0] and str(file) in said[1]
    with client, client.mutex(path) as hold:
        said += [repr(client), repr(client.stats()), repr(hold), repr(client.mutex(path).contenders())]
    file.write_text(SECRET)
    monkeypatch.setenv("ZKLOCK_TEST_AUTH", SECRET)
    for wrong, word in (
        (lambda: zklock.Digest.from_file(file), str(file)),
        (lambda: zklock.Client(hosts, auth=from_file).connect(), str(file)),
        (lambda: zklock.Digest.from_env("ZKLOCK_TEST_AUTH"), "ZKLOCK_TEST_AUTH"),
        (lambda: zklock.Digest("a:b", SECRET), "colon"),
        (lambda: zklock.Digest("", SECRET), "empty"),
    ):
        with pytest.raises(zklock.Error, match="^[^\n]*$") as caught:
            wrong()
        assert word in str(caught.value)
        said += [str(caught.value), repr(caught.value)]
    refuses(ANN, "send the path of its file")
    for auth in (("digest", "ann", SECRET), [("ann", SECRET)], f"ann:{SECRET}"):
        with pytest.raises(TypeError, match="zklock.Digest") as of_type:
            zklock.Client(hosts, auth=auth)  # type: ignore[arg-type]
        said.append(str(of_type.value))
    assert caplog.text
    assert not [line for line in [*said, caplog.text] if SECRET in line]


@pytest.fixture(scope="module")
def by_sasl() -> typing.Iterator[str]:
    """The hosts of a server that knows Ann."""
    for ground in started(f"standalone tick=500 sasl=ann:{SECRET}"):
        yield ground("servers")


def test_a_login_by_sasl_is_right_or_refused(by_sasl: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sasl"
    file.write_text(f"ann:{SECRET}\n")
    monkeypatch.setenv("ZKLOCK_TEST_AUTH", f"ann:{SECRET}")
    logins = [zklock.Sasl("ann", SECRET), zklock.Sasl.from_file(file), zklock.Sasl.from_env("ZKLOCK_TEST_AUTH")]
    auths: list[zklock.Sasl | list[zklock.Digest | zklock.Sasl]] = [*logins, [ANN, logins[0]]]
    for auth in auths:
        with zklock.Client(by_sasl, auth=auth, access="creator-all") as client, client.mutex("/access-sasl"):
            pass
    wrong = zklock.Client(by_sasl, auth=zklock.Sasl("ann", SECRET + "?"))
    refused = raises(zklock.Refused, wrong.connect).says('"ann"')
    assert SECRET not in repr([logins, refused.error])
    refuses(logins[0], "send the path of its file")


def test_kerberos_is_refused_where_the_wheel_was_built_without_it() -> None:
    for wanted in (zklock.Kerberos, lambda: zklock.Kerberos("zookeeper", host="zk1.example.com")):
        raises(zklock.Refused, wanted).says("built without Kerberos: build it with the feature kerberos")


def test_what_cannot_be_is_refused_at_once() -> None:
    nobody = raises(zklock.InvalidInput, lambda: zklock.Client("zk1:2181", access="creator-all"))
    nobody.says("no node has a creator")
    for access, said in (
        ("world:anyone:r,sasl:billing", "entry 2 of the access list"),
        (["world:anyone:r", f"digest:ann:{SECRET}:r"], "not the password"),
    ):
        problem = raises(zklock.InvalidInput, functools.partial(zklock.Client, "zk1:2181", access=access))
        problem.says(said)
        assert SECRET not in str(problem.error)
    for untyped in (3, [3]):
        with pytest.raises(TypeError, match="access is a str"):
            zklock.Client("zk1:2181", access=untyped)  # type: ignore[arg-type]


def test_users_and_their_lists_are_those_of_what_is_created(
    ground: Ground, zk: zklock.Client, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, hosts = tmp_path / "zookeeper", ground("servers")
    file.write_text(f"ann:{SECRET}\n")
    monkeypatch.setenv("ZKLOCK_TEST_AUTH", f"ann:{SECRET}")
    by_file, by_environment = zklock.Digest.from_file(file), [zklock.Digest.from_env("ZKLOCK_TEST_AUTH")]
    bob = zklock.Client(hosts, auth=zklock.Digest("bob", SECRET))
    for name, auth, access, is_bobs in (
        ("list", by_file, ANN_AND_BOB, True),
        ("text", by_environment, ",".join(ANN_AND_BOB), True),
        ("creator", by_file, "creator-all", False),
        ("read", by_environment, "read-open", False),
    ):
        # Not the fixture's path, because the operator could not read it afterwards.
        path = f"/access-{name}"
        with zklock.Client(hosts, auth=auth, access=access) as ann, ann.mutex(path):
            refused = raises(zklock.Refused, zk.mutex(path, timeout=SOON).hold)
            refused.says(f"lacks the right CREATE in the access list of {path}")
            if is_bobs:
                assert bob.mutex(path).acquire(blocking=False) is False
            else:
                raises(zklock.Refused, lambda: bob.mutex(path).acquire(timeout=SOON)).says("the right CREATE")
            if access == "read-open":
                assert len(zk.mutex(path).contenders()) == 1
            else:
                raises(zklock.Refused, zk.mutex(path).contenders).says(f"the right READ in the access list of {path}")
    bob.close()


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
def files() -> typing.Iterator[Files]:
    """Those of a server that requires a certificate."""
    for ground in started("standalone tls tick=500"):
        # What follows is of an authority that the servers do not know.
        yield Files(*ground("tls").split()[:4])


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
