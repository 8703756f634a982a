#include "execute/step_label.h"

namespace hipdnn_rt {

StepLabel label_of(const LoadedProgram& loaded, std::size_t step) {
  const Program& program = loaded.program();
  const auto& action = program.steps()[step].action;
  if (const auto* execute = std::get_if<ExecuteStep>(&action)) {
    return {"execute", program.executables()[execute->executable].summary, loaded.plan(step)->engine_name()};
  }
  if (const auto* launch = std::get_if<LaunchStep>(&action)) {
    const Kernel& kernel = program.kernels()[launch->kernel];
    return {"launch", kernel.summary.empty() ? kernel.function : kernel.summary, ""};
  }
  return {"copy", "", ""};
}

}  // namespace hipdnn_rt
