"""The hipDNN backend ABI's numeric values as enums, read from the one list that the C header is generated from too."""

import json
from enum import IntEnum
from importlib import resources

_TABLES: dict[str, dict[str, int]] = json.loads(resources.files(__package__).joinpath("enums.json").read_text())


def _enum(name: str, table: str, *prefixes: str, more: str = "") -> IntEnum:
    """Make an enum of one table, or of one and `more`, its common C prefix dropped from every member."""
    members = {}
    for key, value in (_TABLES[table] | _TABLES.get(more, {})).items():
        for prefix in prefixes:
            if key.startswith(prefix):
                members[key.removeprefix(prefix)] = value
                break
        else:
            raise ValueError(f"{table}.{key} starts with none of {prefixes}")
    return IntEnum(name, members)  # type: ignore[return-value]


Attribute = _enum("Attribute", "hipdnnBackendAttributeName_t", "HIPDNN_ATTR_", more="hipdnnMlirExtension_t")
AttributeType = _enum("AttributeType", "hipdnnBackendAttributeType_t", "HIPDNN_TYPE_")
Descriptor = _enum("Descriptor", "hipdnnBackendDescriptorType_t", "HIPDNN_BACKEND_", "HIPDNN_")
DataType = _enum("DataType", "hipdnnDataType_t", "HIPDNN_DATA_")
Pointwise = _enum("Pointwise", "hipdnnPointwiseMode_t", "HIPDNN_POINTWISE_")
Reduce = _enum("Reduce", "hipdnnReduceTensorOp_t", "HIPDNN_REDUCE_TENSOR_")
Resample = _enum("Resample", "hipdnnResampleMode_t", "HIPDNN_RESAMPLE_")
Padding = _enum("Padding", "hipdnnPaddingMode_t", "HIPDNN_PADDING_")
ConvolutionMode = _enum("ConvolutionMode", "hipdnnConvolutionMode_t", "HIPDNN_")
NormPhase = _enum("NormPhase", "hipdnnNormFwdPhase_t", "HIPDNN_NORM_FWD_")
