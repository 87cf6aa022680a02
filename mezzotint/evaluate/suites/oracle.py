"""Writes the program that compares an answer with EvalPlus's reference, input by input; it is run by verify_code."""

# Outputs that are compared as sets, or by whether they are there; names as in EvalPlus 0.3, mbpp.
_AS_SETS = (
    "similar_elements find_char_long common_in_nested_lists extract_singly larg_nnum intersection_array "
    "find_dissimilar Diff"
).split()
_IF_THERE = ["check_str", "text_match_three", "text_starta_endb"]
_ANY = ["are_equivalent"]  # whose reference is not to be relied on
_PROGRAM = """
def _compare(answer):
    import copy, json, math
    reference = {{"__name__": "reference"}}
    exec({solution!r}, reference)
    right, name, tolerance = reference[{name!r}], {name!r}, {tolerance!r}

    def alike(said, due):
        if isinstance(due, float) and isinstance(said, (int, float)):
            return said == due or said != said and due != due or math.isclose(
                said, due, rel_tol=1e-7, abs_tol=tolerance or 1e-6)
        if tolerance and isinstance(due, complex):
            return abs(said - due) <= tolerance
        if isinstance(due, (list, tuple)):
            return type(said) is type(due) and (
                said == due or len(said) == len(due) and all(map(alike, said, due)))
        if isinstance(due, dict) and isinstance(said, dict):
            return said.keys() == due.keys() and all(alike(said[key], due[key]) for key in due)
        return bool(said == due)

    def is_there(value):
        return value if isinstance(value, bool) else value is not None

    def fits(said, due, given):
        if name == "find_zero":
            return abs(reference["poly"](*given, said)) <= tolerance
        if name in {sets!r}:
            return set(said) == set(due)
        if name in {there!r}:
            return is_there(said) == is_there(due)
        return name in {any!r} or name == "sum_div" and said == 0 or alike(said, due)

    for number, given in enumerate(json.loads({inputs!r})):
        try:
            due = right(*copy.deepcopy(given))
        except Exception:
            continue  # the reference has no answer to this either
        said = answer(*copy.deepcopy(given))
        assert fits(said, due, given), f"input {{number}}: {{said!r:.80}} is not {{due!r:.80}}"


_compare({name})
"""


def write_oracle(name: str, solution: str, inputs: str, tolerance: float) -> str:
    """Write tests of function `name`: to each of `inputs`, lists of arguments, it must say what `solution` says.

    inputs: in JSON; one that `solution` itself fails on says nothing. tolerance: how far a number may be off, 10^-6
    where it is 0.
    Returns: a program that ends with an AssertionError for an answer that is not the same.
    Source: EvalPlus's comparison (Liu et al. 2023), its special cases by name.
    """
    return _PROGRAM.format(
        name=name,
        solution=solution,
        inputs=inputs,
        tolerance=tolerance,
        sets=_AS_SETS,
        there=_IF_THERE,
        any=_ANY,
        function=name,
    )
