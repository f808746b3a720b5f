// Command images lists the images of a lock.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/quayside/quayside/lockfile"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	lock, err := lockfile.Parse(os.Args[1], data)
	if err != nil {
		log.Fatal(err) // a line for each fault, with its position
	}
	for _, pin := range lock.Pins {
		for _, image := range pin.RelatedImages {
			fmt.Println(pin.Key(), image.Image)
		}
	}
}
