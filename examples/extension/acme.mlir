// acme::BiasQuickGelu: z * sigmoid(alpha * z) where z is x + bias, or x alone.
func.func @bias_quick_gelu(
    %x: !torch.vtensor,
    %bias: !torch.optional<vtensor>,
    %alpha: !torch.float {hipdnn.attribute = "alpha", hipdnn.default = 1.702}) -> !torch.vtensor {
  %one = torch.constant.int 1
  %none = torch.constant.none
  %is_given = torch.aten.__isnot__ %bias, %none : !torch.optional<vtensor>, !torch.none -> !torch.bool
  %z = torch.prim.If %is_given -> (!torch.vtensor) {
    %b = torch.prim.unchecked_cast %bias : !torch.optional<vtensor> -> !torch.vtensor
    %sum = torch.aten.add.Tensor %x, %b, %one : !torch.vtensor, !torch.vtensor, !torch.int -> !torch.vtensor
    torch.prim.If.yield %sum : !torch.vtensor
  } else {
    torch.prim.If.yield %x : !torch.vtensor
  }
  %scaled = torch.aten.mul.Scalar %z, %alpha : !torch.vtensor, !torch.float -> !torch.vtensor
  %gate = torch.aten.sigmoid %scaled : !torch.vtensor -> !torch.vtensor
  %y = torch.aten.mul.Tensor %z, %gate : !torch.vtensor, !torch.vtensor -> !torch.vtensor
  return %y : !torch.vtensor
}
