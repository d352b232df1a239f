#!/bin/sh
# Runs every case; says which fail, and ends with 1 when one does.
cd "$(dirname "$0")" || exit 2
passed=0
failed=0

# check WANTED OPERATION NUMBER...
check() {
    wanted=$1
    shift
    got=$(sh ./calc.sh "$@")
    if [ "$got" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $*: wanted $wanted, got $got"
    fi
}

check 5 add 2 3
check -1 subtract 2 3
check 6 multiply 2 3
check 4 divide 9 2
check "division by zero" divide 9 0
check 12 sum 2 4 6
check 4 mean 2 4 6
check 7 largest 3 7 5

echo "tests: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
