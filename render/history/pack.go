package history

import (
	"bytes"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"xdspub/render/publish"
	"xdspub/source/load"
)

// A file of entries or objects has a first line, blocks of objects, a table, and a trailer with the place of the
// table and the hash of all bytes before. The first line tells the layout.
const (
	firstWords = "xdspub history "
	firstLine  = firstWords + "1\n"

	trailer = 8 + sha256.Size
	// blockSize is the number of bytes of objects that are compressed together. A larger object has its own block.
	blockSize = 64 << 10
	// minCompressed is the size of a block from which on compression saves more than it costs.
	minCompressed = 16 << 10

	blockWidth  = 8 + 4 + 4
	objectWidth = len(hash{}) + 4 + 4 + 4

	// maxFile bounds a file, maxObject an object, maxEntry the text of an entry, and maxKeys the keys of a tree.
	maxFile   = load.MaxTotal
	maxObject = publish.MaxFile
	maxEntry  = 1 << 20
	maxKeys   = load.MaxResources
)

// packWriter makes a file.
type packWriter struct {
	data    []byte
	blocks  []byte // the table of blocks: offset, stored bytes, bytes
	objects []byte // the table of objects: hash, block, offset, bytes
	block   []byte // the objects of the present block
	has     map[hash]bool
	zip     *flate.Writer // nil before the first compressed block
}

func newPackWriter() *packWriter {
	return &packWriter{data: []byte(firstLine), has: make(map[hash]bool)}
}

// add adds an object, unless the file has the object.
func (w *packWriter) add(h hash, object []byte) {
	if w.has[h] {
		return
	}
	w.has[h] = true
	if len(w.block) > 0 && len(w.block)+len(object) > blockSize {
		w.endBlock()
	}
	w.objects = append(w.objects, h[:]...)
	for _, n := range []int{len(w.blocks) / blockWidth, len(w.block), len(object)} {
		w.objects = binary.BigEndian.AppendUint32(w.objects, uint32(n))
	}
	w.block = append(w.block, object...)
}

// endBlock compresses the present block.
func (w *packWriter) endBlock() {
	stored := w.block
	if len(w.block) >= minCompressed {
		if z := w.compressed(); len(z) < len(w.block) {
			stored = z
		}
	}
	w.blocks = binary.BigEndian.AppendUint64(w.blocks, uint64(len(w.data)))
	w.blocks = binary.BigEndian.AppendUint32(w.blocks, uint32(len(stored)))
	w.blocks = binary.BigEndian.AppendUint32(w.blocks, uint32(len(w.block)))
	w.data, w.block = append(w.data, stored...), w.block[:0]
}

func (w *packWriter) compressed() []byte {
	var b bytes.Buffer
	if w.zip == nil {
		w.zip, _ = flate.NewWriter(&b, flate.BestSpeed) // no error: the level is valid
	} else {
		w.zip.Reset(&b)
	}
	_, _ = w.zip.Write(w.block) // a Buffer returns no error
	_ = w.zip.Close()
	return b.Bytes()
}

// finish returns the file with an entry, which may be empty.
func (w *packWriter) finish(entry []byte) []byte {
	if len(w.block) > 0 {
		w.endBlock()
	}
	table := len(w.data)
	sort.Sort(objectTable(w.objects))
	for _, part := range [][]byte{entry, w.blocks, w.objects} {
		w.data = binary.BigEndian.AppendUint32(w.data, uint32(len(part)))
		w.data = append(w.data, part...)
	}
	w.data = binary.BigEndian.AppendUint64(w.data, uint64(table))
	sum := sha256.Sum256(w.data)
	return append(w.data, sum[:]...)
}

// objectTable is a table of objects. It is sorted by hash.
type objectTable []byte

func (t objectTable) Len() int         { return len(t) / objectWidth }
func (t objectTable) row(i int) []byte { return t[i*objectWidth : (i+1)*objectWidth] }
func (t objectTable) hash(i int) hash  { return hash(t.row(i)[:len(hash{})]) }

func (t objectTable) Less(i, j int) bool {
	return bytes.Compare(t.row(i)[:len(hash{})], t.row(j)[:len(hash{})]) < 0
}

func (t objectTable) Swap(i, j int) {
	var row [objectWidth]byte
	copy(row[:], t.row(i))
	copy(t.row(i), t.row(j))
	copy(t.row(j), row[:])
}

// place is where an object is: in a block, from an offset on.
type place struct{ block, offset, size int }

func (t objectTable) place(i int) place {
	b := t.row(i)[len(hash{}):]
	return place{int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:])), int(binary.BigEndian.Uint32(b[8:]))}
}

// find returns the place of an object.
func (t objectTable) find(h hash) (place, bool) {
	i, found := sort.Find(t.Len(), func(i int) int { return bytes.Compare(h[:], t.row(i)[:len(h)]) })
	if !found {
		return place{}, false
	}
	return t.place(i), true
}

// pack is a file of entries or objects, without its blocks.
type pack struct {
	name   string
	size   int64
	entry  []byte // empty in a joined file of objects
	blocks []block
	table  objectTable
	last   int    // the number of the last read block
	loaded []byte // the objects of this block
}

// isEntry reports whether the file is of an entry, and not of objects only.
func (p *pack) isEntry() bool { return strings.HasSuffix(p.name, entrySuffix) }

// block is a run of objects in a file.
type block struct {
	offset       int64
	stored, size int
}

// remedy ends the faults of a file.
const remedy = "; restore the file from a backup, or remove it"

var (
	errSum   = errors.New("the file is damaged: its hash is wrong" + remedy)
	errTable = errors.New("the file is damaged: its table is invalid" + remedy)
)

// parsePack reads the table of a file, and checks the hash of the file.
func parsePack(name string, data []byte) (*pack, error) {
	line, _, _ := bytes.Cut(data[:min(len(data), 64)], []byte("\n"))
	layout, ours := strings.CutPrefix(string(line), firstWords)
	switch {
	case !ours:
		return nil, errors.New("the file does not begin as a file of the history" + remedy)
	case layout+"\n" != strings.TrimPrefix(firstLine, firstWords):
		return nil, fmt.Errorf("the file has layout %.20q, and this program knows layout 1: use the program that wrote the file", layout)
	case len(data) < len(firstLine)+trailer:
		return nil, errSum
	}
	end := len(data) - sha256.Size
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return nil, errSum
	}
	end -= 8
	table := binary.BigEndian.Uint64(data[end:])
	if table < uint64(len(firstLine)) || table > uint64(end) {
		return nil, errTable
	}
	p := &pack{name: name, size: int64(len(data)), last: -1}
	var blocks []byte
	rest := data[table:end]
	for _, part := range []*[]byte{&p.entry, &blocks, (*[]byte)(&p.table)} {
		if len(rest) < 4 || uint64(binary.BigEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return nil, errTable
		}
		n := 4 + int(binary.BigEndian.Uint32(rest))
		*part, rest = bytes.Clone(rest[4:n]), rest[n:]
	}
	if len(rest) > 0 || len(p.entry) > maxEntry || !p.readBlocks(blocks, int64(table)) || !p.validTable() {
		return nil, errTable
	}
	return p, nil
}

// readBlocks reads the table of blocks, which end before the offset end.
func (p *pack) readBlocks(t []byte, end int64) bool {
	at := int64(len(firstLine))
	for ; len(t) >= blockWidth; t = t[blockWidth:] {
		b := block{int64(binary.BigEndian.Uint64(t)), int(binary.BigEndian.Uint32(t[8:])), int(binary.BigEndian.Uint32(t[12:]))}
		if b.offset != at || b.stored > b.size || b.size > maxObject {
			return false
		}
		at += int64(b.stored)
		p.blocks = append(p.blocks, b)
	}
	return len(t) == 0 && at == end
}

// validTable reports whether the objects are sorted and inside of the blocks.
func (p *pack) validTable() bool {
	if len(p.table)%objectWidth != 0 {
		return false
	}
	for i := range p.table.Len() {
		at := p.table.place(i)
		if i > 0 && !p.table.Less(i-1, i) || at.block >= len(p.blocks) || at.offset+at.size > p.blocks[at.block].size {
			return false
		}
	}
	return true
}

// object reads an object, and checks its hash. read reads bytes of the file.
func (p *pack) object(h hash, at place, read func(b []byte, offset int64) error) ([]byte, error) {
	loaded := p.loaded
	if p.last != at.block {
		var err error
		if loaded, err = p.blocks[at.block].read(read); err != nil {
			return nil, err
		}
		if len(loaded) <= blockSize {
			p.last, p.loaded = at.block, loaded
		}
	}
	object := loaded[at.offset : at.offset+at.size]
	if hashOf(object) != h {
		return nil, errors.New("the file is damaged: the hash of an object is wrong" + remedy)
	}
	return object, nil
}

// read reads the objects of a block.
func (b block) read(read func(b []byte, offset int64) error) ([]byte, error) {
	stored := make([]byte, b.stored)
	if err := read(stored, b.offset); err != nil {
		return nil, err
	}
	if b.stored == b.size {
		return stored, nil
	}
	unzip := flate.NewReader(bytes.NewReader(stored))
	loaded := make([]byte, b.size)
	if _, err := io.ReadFull(unzip, loaded); err != nil {
		return nil, fmt.Errorf("the file is damaged: %w"+remedy, err)
	}
	return loaded, nil
}

// sizeIn returns about how many bytes of the file an object takes, with its row in the table.
func (p *pack) sizeIn(at place) int64 {
	b := p.blocks[at.block]
	return int64(objectWidth) + int64(at.size)*int64(b.stored)/int64(cmp.Or(b.size, 1))
}

// objects calls visit for each object, in the order of the file.
func (p *pack) objects(visit func(h hash, at place) error) error {
	order := make([]int, p.table.Len())
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := p.table.place(i), p.table.place(j)
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.offset, b.offset))
	})
	for _, i := range order {
		if err := visit(p.table.hash(i), p.table.place(i)); err != nil {
			return err
		}
	}
	return nil
}
