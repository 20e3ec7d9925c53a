# Fails if the library has a function-local static with dynamic initialization: a fork during the first call leaves the
# child with a half initialized one, for which it waits forever.
execute_process(COMMAND ${NM} --demangle ${LIBRARY} OUTPUT_VARIABLE symbols ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR symbols STREQUAL "")
  message(FATAL_ERROR "${NM} shows no symbols of ${LIBRARY}")
endif()
string(REGEX MATCHALL "guard variable for [^\n]*|__cxa_guard_acquire" guards "${symbols}")
if(guards)
  list(JOIN guards "\n  " lines)
  message(FATAL_ERROR "initialize when the library is loaded, or with a constant:\n  ${lines}")
endif()
