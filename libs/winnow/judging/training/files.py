"""The model file: coefficients with what they were fitted on, and the calibration of the training-free formula on the same entries."""

import json
from typing import Final

import numpy as np

from winnow.judging.formula import FORMULA_VERSION, formula
from winnow.judging.model import SourceModel
from winnow.judging.training import recipe
from winnow.judging.training.logistic import platt
from winnow.judging.training.rows import SOURCE_CHANGES, Rows

_DECIMALS: Final = 6


def model_file(model: SourceModel, rows: Rows, *, data_name: str, boundaries: int, seed: int) -> str:
    """The text of a model file, ready to be shipped; `SourceModel.from_json` and `Calibration.from_json` read it."""
    natural = rows.natural
    sums = np.array([formula(dict(zip(rows.names, row, strict=True))) for row in rows.x[natural].tolist()], float)
    slope, intercept = platt(sums, rows.source[natural])
    said = model.as_json()
    said["formula"] = {"version": FORMULA_VERSION, "slope": round(slope, _DECIMALS), "intercept": round(intercept, _DECIMALS)}
    said["fitted_on"] |= {
        "data": data_name,
        "boundaries": boundaries,
        "entries": int(natural.sum()),
        "changed_entries": int(np.isin(rows.change, SOURCE_CHANGES).sum()),
    }
    said["recipe"] = {"strength": recipe.STRENGTH, "negative_weight": recipe.NEGATIVE_WEIGHT, "seed": seed}
    return json.dumps(said, indent=1) + "\n"
