"""What a row cost, with the times that an engine knows; what its program counted, decoding writes down."""

from dataclasses import replace

from mezzotint.decoding.program import Finished
from mezzotint.decoding.receipt import write_receipt
from mezzotint.decoding.sampler import Sampler
from mezzotint.engine.costs import CostBook
from mezzotint.engine.row import Row
from mezzotint.types import Receipt


def write_row_receipt(
    row: Row, finished: Finished, now_s: float, canvas_length: int, defaults: Sampler, costs: CostBook
) -> Receipt:
    """The receipt of a row whose program has ended at `now_s`, by the engine's clock."""
    params = row.request.params
    sampler = params.resolve_sampler(defaults) if params.decoder in ("diffusion", "verified") else None
    weighed = costs.read() if params.decoder == "verified" else None
    receipt = write_receipt(
        len(row.request.prompt), row.blocks, finished, params, sampler, row.seed, canvas_length, weighed
    )
    return replace(
        receipt,
        cached_tokens=row.cached,
        queue_s=row.admitted_s - row.arrived_s,
        prefill_s=row.prefilled_s - row.admitted_s,
        generation_s=now_s - row.prefilled_s,
    )
