# Operations on two numbers.

add() {
    echo "$(($1 + $2))"
}

subtract() {
    echo "$(($1 - $2))"
}

multiply() {
    echo "$(($1 * $2))"
}

divide() {
    if [ "$2" -eq 0 ]; then
        echo "division by zero"
        return 1
    fi
    echo "$(($1 / $2))"
}
