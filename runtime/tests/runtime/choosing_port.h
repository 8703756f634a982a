// What a test can ask of the port with several engines, see choosing_port.cc. Looked up by name.
#pragma once

extern "C" {

/// Plans built, restored and executed since the last call.
struct ChoosingCounts {
  int built;
  int restored;
  int executed;
};
void choosing_take_counts(ChoosingCounts* counts);

/// Whether plans are taken back that were serialized; they are at first.
void choosing_let_restore(bool is_possible);

/// The first engines, as many as said, answer wrongly, and all alike; none does at first.
void choosing_be_wrong(int engines);

/// The next builds of plans, as many as said, fail with this status.
void choosing_fail_builds(int status, int count);
}
