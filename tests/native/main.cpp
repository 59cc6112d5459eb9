// The main() of programs whose tests are from several sources.
#include "check.hpp"

CHECK_MAIN
