"""Programs that cannot be installed are reported, without the places that were searched."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.comparison import CLASSIFIERS, TIMED, VARIANTS, WITH_ALL_WORDS
from benchmarks.environments import HERE, NCA, PEERS, Environment, _said, plain_environment, prepared
from benchmarks.tokens import tokenizers


def test_each_peer_has_its_adapter_and_each_variant_its_peer() -> None:
    names = {peer.name for peer in (NCA, *PEERS)}
    assert all((HERE / peer.adapter).is_file() for peer in (NCA, *PEERS) if peer.adapter)
    assert {variant.peer for variant in (*VARIANTS, *TIMED, *WITH_ALL_WORDS)} <= names
    assert {peer for peer, _ in CLASSIFIERS} <= names
    assert all(peer.rule or "==" in peer.requirements[0] for peer in PEERS if peer.adapter)


def test_the_reason_names_no_address() -> None:
    errors = "Looking in https://index.example/simple\nERROR: No matching distribution found for x\nERROR: https://a.example\n"
    assert _said(errors) == "ERROR: No matching distribution found for x"
    assert _said("ERROR: cannot reach https://a.example") == "its installation failed"


def test_a_peer_s_process_sees_no_keys() -> None:
    seen = plain_environment("/nowhere")
    assert {"HOME", "NCA_HOME", "TIKTOKEN_CACHE_DIR"} <= set(seen)
    assert not [name for name in seen if name.endswith(("_KEY", "_TOKEN")) or "PROXY" in name.upper()]
    assert any(tokenizers().iterdir())


def test_who_is_not_asked_is_not_there_and_a_rule_is_its_own_version() -> None:
    codex = next(one for one in PEERS if one.name == "codex")
    assert prepared(codex) == Environment(codex, codex.rule)
    for peer in (NCA, codex):
        assert not prepared(replace(peer, why_not="not in this run")).is_ready
