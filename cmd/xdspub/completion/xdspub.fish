# Completion of xdspub for fish.
function __xdspub_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command xdspub __complete $words[2..-1] "$current" 2>/dev/null
end
function __xdspub_wants
    contains -- $argv[1] (__xdspub_complete)
end
complete -c xdspub -f
complete -c xdspub -k -a '(__xdspub_complete | string match -v ":*")'
complete -c xdspub -n '__xdspub_wants :files' -F
complete -c xdspub -n '__xdspub_wants :folders' -a '(__fish_complete_directories (commandline -ct))'
