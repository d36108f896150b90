"""HPQF: trains any PyTorch model in a per-layer precision plan and says afterwards what really ran.

    trainer = hpqf.MixedPrecisionTrainer(model, precision_config={"default": "bf16", "sensitive_layers": [model.head]})
    trainer.train(loader, epochs=2)
    print(trainer.audit())
"""
import os
import sys
import types

import torch   # noqa: F401  first: the extension links the libraries that torch has loaded

from .errors import Error


def _refuse_second_copy() -> None:
    # The engine takes one dispatch key for the process: two copies would fight over it. The note outlives `del sys.modules["hpqf"]`.
    here = os.path.dirname(os.path.realpath(os.path.join(os.path.dirname(__file__), "_C.so")))
    first = sys.modules.setdefault("hpqf_loaded_from", types.ModuleType(here)).__name__
    if first != here:
        raise Error(f"import hpqf from {here}", f"one copy per process; {first} is loaded already",
                    "start a new process, and keep one of the two on sys.path")


_refuse_second_copy()

from ._C import (   # noqa: E402
    Alert,
    AuditReport,
    AuditRow,
    DetectorOptions,
    Device,
    FallbackRules,
    GradientFinding,
    GradientObservation,
    LayerPrecision,
    ModelFacts,
    PrecisionPlan,
    ProfileReport,
    RangeRules,
    RateTable,
    Rule,
    Sensitivity,
    default_alert_rules,
    device,
    devices,
    formats,
    measure_peaks,
    quantize_dequantize,
)
from ._C import version as __version__   # noqa: E402
from . import integrations   # noqa: E402
from .allocator import allocate   # noqa: E402
from .attach import audit   # noqa: E402
from .describe import model_facts   # noqa: E402
from .gradient_monitor import GradientMonitor   # noqa: E402
from .loss_scaler import LossScaler, StepStatus   # noqa: E402
from .monitor import Monitor   # noqa: E402
from .precision import precision   # noqa: E402
from .profiler import Profiler   # noqa: E402
from .sensitivity import DynamicPrecisionAllocator, SensitivityReport, profile   # noqa: E402
from .trainer import MixedPrecisionTrainer   # noqa: E402

__all__ = [
    "Alert", "AuditReport", "AuditRow", "DetectorOptions", "Device", "DynamicPrecisionAllocator", "Error", "FallbackRules",
    "GradientFinding", "GradientMonitor", "GradientObservation", "LayerPrecision", "LossScaler", "MixedPrecisionTrainer",
    "ModelFacts", "Monitor", "PrecisionPlan", "ProfileReport", "Profiler", "RangeRules", "RateTable", "Rule", "Sensitivity",
    "SensitivityReport", "StepStatus", "allocate", "audit", "default_alert_rules", "device", "devices", "formats",
    "integrations", "measure_peaks", "model_facts", "precision", "profile", "quantize_dequantize",
]
