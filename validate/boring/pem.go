package boring

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// block is one PEM block.
type block struct {
	label string
	// header holds the lines before the first empty line. Only encrypted keys may have a header.
	header string
	data   []byte
}

// The labels that BoringSSL accepts for each kind of block.
var (
	certificateLabels = []string{"CERTIFICATE", "X509 CERTIFICATE"}
	// A leaf certificate or a trust anchor may also be a certificate with trust settings.
	trustedLabels = append(slices.Clip(certificateLabels), "TRUSTED CERTIFICATE")
	keyLabels     = []string{"PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY"}
)

const crlLabel = "X509 CRL"

// blocks returns all PEM blocks of a text and skips the text around the blocks. If a block is damaged, blocks
// returns an error and the blocks before.
func blocks(text []byte) (list []block, err error) {
	lines := slices.Collect(bytes.Lines(text))
	for len(lines) > 0 {
		label, ok := delimiter(lines[0], "-----BEGIN ")
		lines = lines[1:]
		if !ok {
			continue
		}
		b := block{label: label}
		if lines, err = b.read(lines); err != nil {
			return list, err
		}
		list = append(list, b)
	}
	return list, nil
}

// read reads the lines of a block up to its END line, and returns the lines after the block.
func (b *block) read(lines [][]byte) (rest [][]byte, err error) {
	end := slices.IndexFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte("-----END ")) })
	if end < 0 {
		return nil, fmt.Errorf("a PEM block %q has no -----END line", b.label)
	}
	if label, ok := delimiter(lines[end], "-----END "); !ok || label != b.label {
		return nil, fmt.Errorf("the -----END line of a PEM block %q has another label", b.label)
	}
	body := lines[:end]
	if blank := slices.IndexFunc(body, func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }); blank >= 0 {
		b.header = string(bytes.Join(body[:blank], nil))
		body = body[blank+1:]
	}
	text := strings.Join(strings.Fields(string(bytes.Join(body, nil))), "")
	if b.data, err = base64.StdEncoding.DecodeString(text); err != nil || len(b.data) == 0 {
		return nil, fmt.Errorf("a PEM block %q is not valid base64", b.label)
	}
	return lines[end+1:], nil
}

// delimiter returns the label in the BEGIN or END line of a block. ok is false if the line is no such line.
func delimiter(line []byte, start string) (label string, ok bool) {
	label, ok = strings.CutPrefix(strings.TrimRight(string(line), "\x00\t\n\v\f\r "), start)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(label, "-----")
}

var errHeader = errors.New("a PEM block contains an empty line or a header")

// noBlock explains why a text has no block of the kind that noun names. list are the blocks of the text.
func noBlock(text []byte, noun string, list []block) error {
	switch {
	case len(list) > 0:
		return fmt.Errorf("it has no %s, but a PEM block %q", noun, list[0].label)
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf-----BEGIN ")):
		return errors.New("a byte order mark precedes -----BEGIN")
	case bytes.Contains(text, []byte(`-----\n`)):
		return errors.New(`it contains the characters \n instead of line ends`)
	case bytes.Contains(text, []byte("-----BEGIN ")):
		return errors.New("-----BEGIN is not at the start of a line that ends with -----")
	case len(text) > 0 && text[0] == 0x30: // 0x30 begins a SEQUENCE
		return errors.New("not PEM: this may be DER")
	default:
		return errors.New("it has no PEM block")
	}
}
