# Operations on any number of numbers.

sum() {
    total=0
    for number in "$@"; do
        total=$((total + number))
    done
    echo "$total"
}

mean() {
    total=0
    count=1
    for number in "$@"; do
        total=$((total + number))
        count=$((count + 1))
    done
    echo "$((total / count))"
}

largest() {
    best=$1
    for number in "$@"; do
        if [ "$number" -gt "$best" ]; then
            best=$number
        fi
    done
    echo "$best"
}
