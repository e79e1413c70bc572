# Completion of xdspub for bash.
_xdspub() {
    local word line kind prefix tab=$'\t' open= words=()
    # bash splits --flag=value and unix:PATH where COMP_WORDBREAKS says so.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ ( -n $open || $word == [=:]* ) && ${#words[@]} -gt 0 ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        [[ $word == *[=:] ]] && open=1 || open=
    done
    # What stands before the part of the word that bash replaces.
    word=${COMP_WORDS[COMP_CWORD]}
    prefix=${words[${#words[@]}-1]}
    [[ $word == [=:] ]] || prefix=${prefix%"$word"}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :*) kind=${line#:} ;;
        *)
            line=${line%%"$tab"*}
            COMPREPLY+=("${line#"$prefix"}")
            ;;
        esac
    done < <(command xdspub __complete "${words[@]}" 2>/dev/null)
    # bash 3.2 has no compopt: it offers files where there is nothing else.
    case $kind in
    values) compopt +o default 2>/dev/null ;;
    folders) compopt +o default -o dirnames 2>/dev/null ;;
    esac
}
complete -o default -F _xdspub xdspub
