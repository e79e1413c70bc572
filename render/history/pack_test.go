package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// fileOf returns a file with an entry and some objects of a size.
func fileOf(entry string, count, size int) ([]byte, held) {
	random := rand.New(rand.NewPCG(3, 4))
	w, objects := newPackWriter(), make(held)
	for i := range count {
		object := bytes.Repeat([]byte(fmt.Sprintf("r%d ", i)), size/4+1)
		object[0] = byte(random.IntN(256))
		h := hashOf(object)
		objects[h] = object
		w.add(h, object)
		w.add(h, object)
	}
	return w.finish([]byte(entry)), objects
}

// reads returns the function that reads bytes of a file.
func reads(file []byte) func([]byte, int64) error {
	return func(b []byte, offset int64) error {
		if n := copy(b, file[offset:]); n < len(b) {
			return fmt.Errorf("%d of %d bytes", n, len(b))
		}
		return nil
	}
}

func TestPack(t *testing.T) {
	for _, c := range []struct{ count, size int }{{0, 0}, {1, 0}, {3, 100}, {500, 300}, {3, blockSize}, {2, 5 * blockSize}} {
		file, objects := fileOf("entry", c.count, c.size)
		p, err := parsePack("x.entry", file)
		if err != nil {
			t.Fatal(err)
		}
		if string(p.entry) != "entry" || p.table.Len() != len(objects) {
			t.Errorf("%d of %d objects, entry %q", p.table.Len(), len(objects), p.entry)
		}
		total := int64(0)
		for h, want := range objects {
			at, ok := p.table.find(h)
			if !ok {
				t.Fatal("an object is missing")
			}
			got, err := p.object(h, at, reads(file))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, want %d: %v", len(got), len(want), err)
			}
			total += p.sizeIn(at)
		}
		if total > int64(len(file)) {
			t.Errorf("the objects take %d bytes of %d", total, len(file))
		}
		if _, ok := p.table.find(hash{1}); ok {
			t.Error("an unknown object is found")
		}
	}
}

// TestPackIsDamaged flips each bit and cuts each end of a file.
func TestPackIsDamaged(t *testing.T) {
	file, _ := fileOf(`{"entry":1}`, 2, 20)
	for i := range file {
		if _, err := parsePack("x", file[:i]); err == nil {
			t.Errorf("%d of %d bytes are read", i, len(file))
		}
		for bit := range 8 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 1 << bit
			if _, err := parsePack("x", damaged); err == nil {
				t.Errorf("byte %d, bit %d: read", i, bit)
			}
		}
	}
	if _, err := parsePack("x", append(file, 0)); err == nil {
		t.Error("a longer file is read")
	}
}

// forged returns a file with the right hash.
func forged(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

// readAll reads all objects of a file, if it is valid.
func readAll(file []byte) error {
	p, err := parsePack("x", file)
	if err != nil {
		return err
	}
	return p.objects(func(h hash, at place) error {
		_, err := p.object(h, at, reads(file))
		return err
	})
}

// TestPackIsForged reads files whose hash is right, and whose tables somebody has changed. None causes a panic, or
// gives an object under another name.
func TestPackIsForged(t *testing.T) {
	for _, size := range []int{20, 2 * minCompressed} {
		file, _ := fileOf(`{"entry":1}`, 3, size)
		body := file[:len(file)-sha256.Size]
		table := binary.BigEndian.Uint64(body[len(body)-8:])
		for i := int(table) - 20; i < len(body); i++ {
			for _, b := range []byte{0, 1, 127, 128, 255} {
				changed := bytes.Clone(body)
				changed[i] = b
				_ = readAll(forged(changed))
			}
		}
	}
	if err := readAll(forged([]byte(firstWords + "2\n" + string(make([]byte, 100))))); err == nil || err.Error() == errSum.Error() {
		t.Errorf("another layout: %v", err)
	}
}

func FuzzPack(f *testing.F) {
	for _, count := range []int{0, 2} {
		file, _ := fileOf("entry", count, 50)
		f.Add(file[:len(file)-sha256.Size])
	}
	f.Fuzz(func(_ *testing.T, body []byte) { _ = readAll(forged(body)) })
}
