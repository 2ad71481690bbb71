"""The numpy oracle, run live on the prompts cheapest to compute, still says what is on record.

The C++ side of the comparison is src/model/oracle_test.cc, which reads the same record. To make the
record anew (four minutes):

    python3 tests/oracle/oracle.py models/SmolLM2-135M-Instruct.Q4_1.gguf \\
        tests/oracle/prompts.json > tests/oracle/expected.json
"""
import json
import pathlib

import pytest

np = pytest.importorskip("numpy")
import oracle  # noqa: E402  (needs numpy)

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parents[1] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def read(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def test_record_covers_every_prompt_without_near_ties():
    expected = {row["name"]: row for row in read("expected.json")}
    prompts = read("prompts.json")
    assert len(prompts) >= 8
    for prompt in prompts:
        row = expected[prompt["name"]]
        assert row["tokens"] == prompt["tokens"]
        assert len(row["greedy"]) >= 64
        # Closer logits would leave the next token to rounding, and "identical" to luck.
        assert row["margin_min"] > 1e-3, prompt["name"]


@pytest.mark.parametrize("name", ["sql", "greek"])
def test_live_oracle_agrees_with_the_record(name):
    if not MODEL.exists():
        pytest.skip("no model file")
    expected = next(row for row in read("expected.json") if row["name"] == name)
    n_tokens = 8
    row = oracle.run(oracle.Llama(MODEL), expected, n_tokens)
    assert row["greedy"] == expected["greedy"][:n_tokens]
    recorded = dict(map(tuple, expected["top"]))
    for token, log_prob in row["top"]:
        if token in recorded:  # the tail of the list may swap places with another BLAS
            assert abs(recorded[token] - log_prob) < 1e-3
    assert len(recorded.keys() & {token for token, _ in row["top"]}) > 55
