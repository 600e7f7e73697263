"""What the feature brings to an engine."""

from model.feature import Feature
from model.features.circuit.circuits import Circuit, CircuitGraph, PathEffects, Paths
from model.features.circuit.sums import CellWords, CellWrites, LogitSum, ScoreSum, Why, Writes
from model.features.what_if.results import endpoints

FEATURE = Feature(
    endpoints=endpoints({Why: ScoreSum, Writes: LogitSum, CellWrites: CellWords, Circuit: CircuitGraph, Paths: PathEffects}),
    answers="model.features.circuit.answers",
    traces="model.features.circuit.saved_sums",
    saved="model.features.circuit.sums_command:with_sums",
    commands={
        "circuit": "model.features.circuit.circuit_command:circuit",
        "paths": "model.features.circuit.circuit_command:paths",
        "why": "model.features.circuit.sums_command:why",
        "writes": "model.features.circuit.sums_command:writes",
    },
)
