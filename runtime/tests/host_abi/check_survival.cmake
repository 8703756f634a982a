# cmake -DPROGRAM=test_host_abi -DCRASHING=LIBRARY -P check_survival.cmake: what the program reports of libraries that crash or cannot be opened.

# Runs the program with the arguments; its exit status, stdout and stderr must be as expected, the outputs as regular expressions.
function(expect status out err)
  execute_process(COMMAND ${PROGRAM} ${ARGN} RESULT_VARIABLE got_status OUTPUT_VARIABLE got_out ERROR_VARIABLE got_err)
  if(NOT got_status STREQUAL status OR NOT got_out MATCHES "${out}" OR NOT got_err MATCHES "${err}")
    message(SEND_ERROR "${ARGN}: expected ${status}, '${out}', '${err}'; got ${got_status}\n${got_out}\n${got_err}")
  endif()
endfunction()

set(exit "FAILED handle: every status has a text\n  the process ended with exit status 3\n")
set(signal "FAILED handle: stream is returned as set\n  the process ended by signal 11, Segmentation fault\n")
expect(1 "^${signal}${exit}7 cases, 2 failed, 0 refused\n$" "" ${CRASHING} --portable --filter handle:)
expect(1 "^${signal}1 cases, 1 failed, 0 refused\n$" "" ${CRASHING} --filter "stream is returned")
expect(0 "^1 cases, 0 failed, 0 refused\n$" "" ${CRASHING} --filter "invalid descriptor type is refused")
expect(1 "^0 cases, 0 failed, 0 refused\n$" "" ${CRASHING} --filter "no case has this name")
expect(2 "^$" "no/such/library.so: cannot open" no/such/library.so)
# The C library can be opened, and has nothing of hipDNN's.
expect(2 "^$" "libc.so.6 lacks the symbol hipdnnCreate\n$" libc.so.6)
expect(2 "^$" "libc.so.6 lacks the symbol hipMalloc\n$" ${CRASHING} libc.so.6)

set(ENV{CRASH_AT_EXIT} 1)
set(late "FAILED library: lives on after handle: invalid descriptor type is refused\n  the process ended by signal 6, Aborted\n")
expect(1 "^${late}2 cases, 1 failed, 0 refused\n$" "" ${CRASHING} --filter "invalid descriptor type is refused")
