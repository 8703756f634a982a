# cmake -DPROGRAM=test_host_abi -DHOST=LIBRARY -DOFFERING=LIBRARY -P check_offers.cmake: cases about what a library may have are refused, pass or
# fail, as the library does not have it, has it, or has it wrong.

function(expect library filter out)
  execute_process(COMMAND ${PROGRAM} ${library} --portable --filter ${filter} OUTPUT_VARIABLE got)
  if(NOT got MATCHES "${out}")
    message(SEND_ERROR "${filter} with FAULT='$ENV{FAULT}': expected '${out}', got\n${got}")
  endif()
endfunction()

expect(${HOST} "policy: " "3 cases, 0 failed, 3 refused\n$")
expect(${HOST} " plan " "REFUSED serialization: plan comes back from bytes\n  the engine does not serialize its plan: status 8, .*does not serialize")
expect(${OFFERING} "policy: " "^3 cases, 0 failed, 0 refused\n$")
expect(${OFFERING} " plan " "0 failed, 0 refused\n$")

function(expect_fault fault failed message)
  set(ENV{FAULT} ${fault})
  expect(${OFFERING} "${failed}" "FAILED ${failed}\n  [^\n]*${message}[^\n]*\n1 cases, 1 failed, 0 refused\n$")
endfunction()

expect_fault("policy id" "policy: ids are hashes of names" "FIRST_POLICY got 0, expected ")
expect_fault("policy order" "policy: an order of none is an error" "no policy has id 12345")
expect_fault("capacity" "serialization: plan comes back from bytes" "a buffer that is too small")
expect_fault("overrun" "serialization: plan comes back from bytes" "bytes past the size")
expect_fault("configuration" "serialization: plan comes back from bytes" "a plan that was read has no configuration")
expect_fault("half" "serialization: half a plan is refused" "half a plan was read as one")
