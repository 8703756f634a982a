"""Models of one operator drawn over shapes, dtypes, broadcasts and attributes, against ONNX Runtime and onnx's reference evaluator.

A strategy per operator (the family modules) draws a `Call`; `operators.case_of` makes a model of it, with operands fed, constant,
transposed or cut out of larger ones, and sometimes a node behind it. The compiler runs it in a process of its own and has to give what the
reference gives: the same integers, booleans and moved elements, and floats within 16 roundings of their dtype, or 8 of the largest result,
times the factor that the strategy states (`compare`). A rejection counts, up to the share that the strategy states.

A few models per operator, always the same, are part of the tests; `HIPDNN_DRAWS=200` draws 200 times as many new ones.
"""
