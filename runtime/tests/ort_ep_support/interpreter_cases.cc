// Which interpreter is chosen, told from folders made for the purpose.
#include "cases.h"
#include "support/interpreter.h"

namespace support_tests {
namespace {

namespace fs = std::filesystem;
using hipdnn_ep::find_interpreter;
using hipdnn_ep::Interpreter;

/// A folder with an environment, an interpreter that would be a host's, and a folder on PATH.
class Places {
 public:
  Places() : path_("PATH", "relative/bin:/none:" + (folder_.path() / "path").string()) {
    for (const fs::path& program : {in_environment(), host(), on_path()}) {
      fs::create_directories(program.parent_path());
      write_script(program, "exit 1");
    }
    fs::create_directories(site_packages());
  }
  fs::path in_environment() const { return folder_.path() / "env" / "bin" / "python3"; }
  fs::path site_packages() const { return folder_.path() / "env" / "lib" / "python3.11" / "site-packages"; }
  fs::path host() const { return folder_.path() / "host" / "python3.12"; }
  fs::path on_path() const { return folder_.path() / "path" / "python3"; }

 private:
  TemporaryFolder folder_;
  Variable path_;
};

void test_first_that_applies_when_several_are_there() {
  const Places places;
  const auto find = [&](const std::string& wanted, const std::string& host, const fs::path& root) {
    const Interpreter found = find_interpreter(wanted, host, root.string());
    check::equal(found.reason, std::string());
    return found.path;
  };
  const std::string host = places.host().string();
  check::equal(find(places.on_path().string(), host, places.site_packages()), places.on_path().string(), "a path asked for");
  check::equal(find("python3", host, places.site_packages()), places.on_path().string(), "a name asked for");
  check::equal(find("", host, places.site_packages()), host, "the host's own");
  check::equal(find("", "/usr/bin/env", places.site_packages()), places.in_environment().string(), "a host that is not Python");
  check::equal(find("", "/none/python3", places.site_packages()), places.in_environment().string(), "a host that is gone");
  check::equal(find("", "", "/usr/share/python"), places.on_path().string(), "no environment");
  check::equal(find("", "", ""), places.on_path().string(), "no package");
  fs::remove(places.in_environment());
  check::equal(find("", "", places.site_packages()), places.on_path().string(), "an environment without its interpreter");
}

void test_reason_when_there_is_none() {
  const Places places;
  const auto reason = [](const std::string& wanted) {
    const Interpreter found = find_interpreter(wanted, "", "");
    check::equal(found.path, std::string());
    return found.reason;
  };
  check::contains(reason("/none/python"), "option python: '/none/python' is not a program");
  check::contains(reason(places.site_packages().string()), "is not a program");
  check::contains(reason("python9"), "option python: no program 'python9' on PATH");
  fs::permissions(places.on_path(), fs::perms::owner_read);
  check::contains(reason(""), "no Python found: install python3 with hipdnn-mlir, or set the option python");
  const Variable nowhere("PATH", std::nullopt);
  check::contains(reason(""), "no Python found");
}

void test_no_package_when_the_library_lies_in_none() {
  // This test program lies in a build folder.
  check::equal(hipdnn_ep::default_package_root(), std::string());
}

}  // namespace

void add_interpreter_cases(check::Suite& suite) {
  suite.add("interpreter: first that applies when several are there", test_first_that_applies_when_several_are_there);
  suite.add("interpreter: reason when there is none", test_reason_when_there_is_none);
  suite.add("interpreter: no package when the library lies in none", test_no_package_when_the_library_lies_in_none);
}

}  // namespace support_tests
