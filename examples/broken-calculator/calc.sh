#!/bin/sh
# A calculator for whole numbers: calc.sh OPERATION NUMBER...
. "$(dirname "$0")/lib/arithmetic.sh"
. "$(dirname "$0")/lib/lists.sh"

operation=$1
case $operation in
    add | subtract | multiply | divide | sum | mean | largest)
        shift
        "$operation" "$@"
        ;;
    *)
        echo "calc.sh: no operation '$operation'" >&2
        exit 2
        ;;
esac
