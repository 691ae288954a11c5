"""Programs that cannot be installed are reported, without the places that were searched."""

from __future__ import annotations

from benchmarks.comparison import CLASSIFIERS, TIMED, VARIANTS, WITH_ALL_WORDS
from benchmarks.environments import HERE, NCA, PEERS, _said, plain_environment
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
