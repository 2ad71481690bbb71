# Compiler, linker and warning choices shared by every room.

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the source tree, so that checkouts in different folders share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wshadow -Werror=unused-result -Werror=return-type
                    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -fno-omit-frame-pointer)
# False alarms of g++ 12 in inlined coroutine frames.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
endif()
# No fused or reassociated floating point unless a kernel asks: decisions must be the same on
# every compiler (design: deterministic simulator).
add_compile_options(-ffp-contract=off)

# HIDANE_SANITIZE: "" | address | thread
set(HIDANE_SANITIZE "" CACHE STRING "Sanitizer: address (with undefined), thread, or empty")
if(HIDANE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(HIDANE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
if(HIDANE_SANITIZE)
  add_compile_definitions(HIDANE_SANITIZED)  # for tests that are minutes long under a sanitizer
endif()
if(HIDANE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# simdjson's parser has another layout with and without this: one setting for every unit, as its
# package sets it, or a program that mixes both crashes.
add_compile_definitions(SIMDJSON_THREADS_ENABLED=1)

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
