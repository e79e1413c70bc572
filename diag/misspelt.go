package diag

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// leastMisspelt is the length of the shortest word of which a misspelling is sure, unless only its letters are in
// another order. Shorter words have too many neighbours.
const leastMisspelt = 4

// Misspelt reports whether word can only be a misspelling of right, a name of w. A word that differs from right only
// by upper case and separators is one. Otherwise all of these must hold, because min_size may stand for max_size,
// and TLSv1_4 for another version:
//
//   - No other name of w is at a distance of mostEdits edits or less.
//   - word and right consist of as many parts, such as max and size.
//   - A part that differs has the same first letter and the same digits, and at least leastMisspelt letters or only
//     other places of its letters.
//   - A part that differs is neither a word of w, nor isWord reports that it is a word, nor is it a plural or a
//     singular of the right part. A nil isWord knows no words.
func (w *Candidates) Misspelt(word, right string, isWord func(string) bool) bool {
	if letters(word) == letters(right) {
		return w.countSpelled(letters(right)) == 1
	}
	wrong, parts := Parts(word), Parts(right)
	if len(wrong) != len(parts) || w.near(word, right) {
		return false
	}
	for i, p := range wrong {
		if p != parts[i] && (!isTypo(p, parts[i]) || w.words()[p] || isWord != nil && isWord(p)) {
			return false
		}
	}
	return true
}

// isTypo reports whether p looks like a misspelling of right.
func isTypo(p, right string) bool {
	long, swapped := min(len(p), len(right)) >= leastMisspelt, sorted(p) == sorted(right)
	return (long || swapped) && p[0] == right[0] && digits(p) == digits(right) && p+"s" != right && right+"s" != p
}

// Parts returns the words of a name in lower case, such as max and size of max_size and of MaxSize.
func Parts(name string) []string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(b.String(), isSeparator)
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// letters returns a name without separators, in lower case.
func letters(name string) string { return strings.Join(Parts(name), "") }

// sorted returns the letters of a word in the order of the alphabet.
func sorted(word string) string {
	letters := []byte(word)
	slices.Sort(letters)
	return string(letters)
}

// digits returns the digits of a word.
func digits(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, word)
}

// countSpelled returns the number of names with the letters spelled.
func (w *Candidates) countSpelled(spelled string) (n int) {
	for _, c := range w.sorted {
		if letters(c.word) == spelled {
			n++
		}
	}
	return n
}

// near reports whether a name other than right is at most mostEdits edits away from word, or may be: the search has
// a bound.
func (w *Candidates) near(word, right string) bool {
	others := slices.DeleteFunc(slices.Clone(w.sorted), func(c choice) bool { return c.word == right })
	s := search{words: others, word: word, limit: mostEdits, left: maxPrefixes}
	s.run()
	return s.best.word != "" || s.left < 0
}

// wordsOf returns the parts of all names.
func wordsOf(sorted []choice) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		words := make(map[string]bool)
		for _, c := range sorted {
			for _, p := range Parts(c.word) {
				words[p] = true
			}
		}
		return words
	})
}
