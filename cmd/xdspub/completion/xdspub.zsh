#compdef xdspub
# Completion of xdspub for zsh.
_xdspub() {
    local line kind tab=$'\t'
    local -a earlier described
    (( CURRENT > 2 )) && earlier=("${(@Q)words[2,CURRENT-1]}")
    for line in "${(@f)$(command xdspub __complete "${earlier[@]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        case $line in
        '') ;;
        :*) kind=${line#:} ;;
        *$tab*) described+=("${${line%%$tab*}//:/\\:}:${line#*$tab}") ;;
        *) described+=("${line//:/\\:}") ;;
        esac
    done
    case $kind in
    files)
        compset -P '--*='
        _files
        ;;
    folders)
        compset -P '--*='
        _files -/
        ;;
    *) _describe -V xdspub described ;;
    esac
}
if [[ ${funcstack[1]} == _xdspub ]]; then
    _xdspub "$@"
else
    compdef _xdspub xdspub
fi
