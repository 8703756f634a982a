// SHA-256 against digests by other implementations.
#include <cstdint>
#include <utility>
#include <vector>

#include "cases.h"
#include "storage/sha256.h"

namespace support_tests {
namespace {

using hipdnn_rt::Sha256;

/// The methods that this machine has.
std::vector<Sha256::Method> methods() {
  if (Sha256::has_instructions()) return {Sha256::Method::fastest, Sha256::Method::portable};
  return {Sha256::Method::portable};
}

std::vector<std::byte> sample(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = size + 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 56);
  return bytes;
}

/// Sizes around every boundary of blocks and padding; digests by Python's hashlib.
const std::vector<std::pair<std::size_t, const char*>>& known_digests() {
  static const std::vector<std::pair<std::size_t, const char*>> digests{
      {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {1, "d1211001882d2ce16a8553e449b6c8b7f71e61836efc2e416143808f20e721e7"},
      {3, "295db5cad43997d66e98392c815758ed6900f36620803228473d3fea8b63e1c5"},
      {55, "2f019f6d4a68a63bf522d08362bbb9868d4af82321ae523d85d780a3a688ed2e"},
      {56, "d989c986b23fb0654afefed5ba1a7cb39052d14a634599cc623f7cf181033212"},
      {57, "92f5931a3489a1ae12657125cf3c352511bb66b1fb21c2a4e2cf6ef1eade0795"},
      {63, "38a4bf749b4f0fc6a57b78c6d0320abb8fca09ff47778fcff86ececaab0295a2"},
      {64, "ebebf707fbb219ae1eea2adbe93965ff2a1761da52e43aa40e6b03ff28fbf872"},
      {65, "f8a84b6748739efd09dd5a8f8f95c52607aaa9fd3bd8ed6cf9c550113322b7a4"},
      {119, "e1c63cc1da6bc71047c5b44acc28cb7ae8db3ffbd1bdeb92d6690b19364e4a00"},
      {120, "12a42c630ee59bf1f47674c42926243a34965dd6750c5b006ef2c7634d648c6c"},
      {127, "9ed004adbb4fac62743c30008dc8d0565119888df6b09cf6f1d3c333d18d2ad5"},
      {128, "f29db1a6dfb030836aba5e3ee832350aa791eb6747a680fc82a5a17c5ddc72b4"},
      {129, "8026bc785fa99c11834a2ccd354bdfd13af6b3bb957bae971cb65fabe7140178"},
      {1000, "1e14fd817786433cc2e713c8179582f33e119865b25b3b7799a2f9d8e140d5a6"},
      {100003, "dce065df4b8242502f52704d5ad0f40762d51b6cd6e124cc54507de4c811505e"}};
  return digests;
}

void test_published_digests_when_messages_are_the_standards() {
  const std::vector<std::pair<std::string, const char*>> messages{
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto method : methods()) {
    for (const auto& [message, expected] : messages) {
      Sha256 digest(method);
      digest.update(message);
      check::equal(digest.hex_digest(), std::string(expected));
    }
  }
}

void test_known_digests_when_sizes_vary() {
  for (const auto method : methods()) {
    for (const auto& [size, expected] : known_digests()) {
      Sha256 digest(method);
      digest.update(sample(size));
      check::equal(digest.hex_digest(), std::string(expected), "digest of " + std::to_string(size) + " bytes");
    }
  }
}

void test_same_digest_when_given_in_pieces() {
  const auto& [size, expected] = known_digests().back();
  const auto bytes = sample(size);
  for (const auto method : methods()) {
    for (const std::size_t piece : {1UL, 7UL, 63UL, 64UL, 65UL, 1000UL}) {
      Sha256 digest(method);
      for (std::size_t begin = 0; begin < size; begin += piece) {
        digest.update(std::span(bytes).subspan(begin, std::min(piece, size - begin)));
        // Asking in between changes nothing.
        if (begin == 7 * piece) digest.hex_digest();
      }
      check::equal(digest.hex_digest(), std::string(expected), "in pieces of " + std::to_string(piece));
    }
  }
}

}  // namespace

void add_sha256_cases(check::Suite& suite) {
  suite.add("sha256: published digests when messages are the standard's", test_published_digests_when_messages_are_the_standards);
  suite.add("sha256: known digests when sizes vary", test_known_digests_when_sizes_vary);
  suite.add("sha256: same digest when given in pieces", test_same_digest_when_given_in_pieces);
}

}  // namespace support_tests
