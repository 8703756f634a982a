"""Programs behind Ray: batches of data sets, servers. The only room that knows Ray, and imported where a user asks for it.

dataset.map_batches(Predictor, fn_constructor_kwargs={"program": "model.hipdnn"}, compute=ActorPoolStrategy(size=2))

Needs ``pip install hipdnn-mlir[serve]``.
"""

from .predictor import Predictor

__all__ = ["Predictor"]
